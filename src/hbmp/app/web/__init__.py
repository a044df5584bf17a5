"""A database in the browser and over HTTP, for `hbmp serve`.

`app` has the routes, `search` turns requests into queries, `limits`, `hosts` and `connections` reject requests that are
too large or use an unknown host name, `pictures` draws items, `codes` computes the second tab, `measures` counts
requests; `static/` is the page.
"""
