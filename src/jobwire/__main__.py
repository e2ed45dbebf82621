"""`python -m jobwire` is the command line."""

from jobwire.cli import main

raise SystemExit(main())
