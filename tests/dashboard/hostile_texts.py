"""Texts that become markup or run as script where a page does not escape them. Each calls `pwned` with its number."""

from __future__ import annotations

TEXTS = [
    "<script>pwned(0)</script>",
    '"><script>pwned(1)</script>',
    "'><img src=x onerror=pwned(2)>",
    "<svg/onload=pwned(3)>",
    "</title><script>pwned(4)</script>",
    "</pre></code></textarea><iframe srcdoc='<script>parent.pwned(5)</script>'>",
    "javascript:pwned(6)",
    "{{ 7 * 7 }} ${pwned(7)} {% raw %}",
    "<a href=javascript:pwned(8)>x</a>",
    '" onmouseover="pwned(9)" autofocus onfocus="pwned(9)',
    "<!--<img src=--><img src=x onerror=pwned(10)>",
    "]]><details open ontoggle=pwned(11)>",
    "&lt;script&gt;pwned(12)&lt;/script&gt;",
    'data: 1\n\nevent: message\ndata: {"title": "pwned(13)"}\n\n',
]
MARKERS = [f"pwned({number})" for number in range(len(TEXTS)) if number != 6]
"""What the page of a job with all of these texts shows of them."""
