"""`python -m rnncli` is the command `rnncli`."""

from rnncli.cli import main

if __name__ == "__main__":
    main()
