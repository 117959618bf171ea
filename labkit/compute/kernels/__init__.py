"""The numba.cuda kernels that the lessons use, one theme a file."""
