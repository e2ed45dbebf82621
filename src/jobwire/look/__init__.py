"""The look that jobwire's pages and tables share: colours, type, times in words."""
