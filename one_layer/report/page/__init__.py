"""The page of a report: one HTML file with its style.

`words` has the sentences of the first screen; `document` fills table.html with tables, and page.html with all of it.
"""
