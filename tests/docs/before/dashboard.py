import os

os.environ["ANNS_TOKEN"] = "a-token-of-more-than-thirty-two-characters"
