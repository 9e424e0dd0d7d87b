"""`python -m netbic` is the command line."""

from netbic.cli import main

main()
