"""Entry point of a worker process; flags are described in README.md.

Kept tiny because the interpreter compiles a script anew at each start, whereas
the package beside it is loaded from its cached byte code.
"""

import sys

sys.path.append(__file__.rpartition("/")[0] or ".")

from reeve_worker.main import main  # noqa: E402  (the path above comes first)

main(sys.argv[1:])
