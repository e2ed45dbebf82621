"""Parts that every HTTP application of jobwire shares: bearer tokens with roles, the rules for addresses, the server.

They need `pip install 'jobwire[web]'`, except for the tokens.
"""
