"""The same work done by gridless and by what else there is, judged by one judge.

Every module that stands for a peer has the same three functions. `train(x, theta, seed, **options)`
returns whatever the other two need. `curve(trained, x, values)` is minus the log likelihood of all
events at each value of theta, `log_density(trained, x, values)` the log of that of each event
(events, values); both may be off by anything that does not depend on theta. Only `ours`, `exact`
and `problems` import gridless, so that a peer can run in an environment of its own.
"""
