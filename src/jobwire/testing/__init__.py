"""Support for the tests of jobwire's users. The fixtures are in `jobwire.testing.plugin`."""
