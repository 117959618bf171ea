"""Telemetry: sources of readings, one sampler for all who watch, and recordings to keep."""
