"""The numba.cuda kernels that the lessons use, one theme a file.

Each file begins with the form that comes to mind first and goes on to those that suit the hardware; docstrings say
what makes the difference, in numbers that ``labkit.inspect`` counts. ``launch(kernel, ...)`` gives a kernel its launch
shape, ``..._reference`` says in NumPy what it computes. To read them in order: maps, stencil, transpose, matmul,
reduction, scan, histogram, image and image_filters, fractal, raymarch, heat, nbody, lennard_jones, sha256, options.

A new kernel needs a line in signatures.py and ``python -m labkit.compute.registers --write``.
"""
