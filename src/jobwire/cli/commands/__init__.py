"""One module per command. None imports more than Typer and the standard library before it runs."""
