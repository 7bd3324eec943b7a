"""gridless: continuous maximum-likelihood estimates from simulation that exists only on a grid.

The public names are listed in `__init__.pyi`; each is loaded when it is first used, so that
`import gridless` does not wait for torch.
"""

from importlib.metadata import version

import lazy_loader

__version__ = version("gridless")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
