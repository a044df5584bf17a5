"""A database in the browser and over HTTP: `hbmp serve`.

`search` says what a request means, `app` has the routes, `limits` what is refused, `pictures` how items look,
`codes` what the second tab shows, `measures` what is counted; `static/` is the page.
"""
