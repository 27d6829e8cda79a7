"""The explorer: a linked view of one or several runs, in the browser.

`view` is what a link restores, `shown` computes what it shows, `page` draws it, `server` serves it.
"""
