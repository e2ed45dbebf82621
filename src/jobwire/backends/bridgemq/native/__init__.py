"""What only this protocol offers."""
