"""`python -m tflq`: the command, if the console script is not on the path."""

from tflq.face.cli.main import main

if __name__ == "__main__":
    main()
