"""The program that runs a real runtime in another Python (3.8 or newer) without tflq: `python FOLDER` runs `__main__`.

Its modules import each other by plain names, since Python puts the folder first in `sys.path`; they are named so that
they hide no runtime. The parent imports what it shares with them from here.
"""
