"""`python -m interpulse COMMAND`: the same as the program `interpulse`."""

from interpulse.programs import interpulse

if __name__ == "__main__":
    interpulse()
