"""``python -m torch.distributed.launch``: the deprecated name of ``torch.distributed.run``."""

from compat.distributed.run import main

if __name__ == "__main__":
    main()
