"""What jobwire offers to the tests of its users; the fixtures are in `jobwire.testing.plugin`."""
