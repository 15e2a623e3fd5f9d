"""The page of a report: one HTML file with its style, its data as JSON, and a small program that draws and sorts.

`content` makes the data, `words` the sentences of the first screen, `runs` the table of runs, `cells` the HTML of tables, and `document`
joins them. The program is in the files `*.js`, one after the other in the order of `document.SCRIPTS`.
"""
