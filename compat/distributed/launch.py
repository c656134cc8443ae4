"""``python -m torch.distributed.launch``: as ``torch.distributed.run``, by its former name."""

from compat.distributed.run import main

if __name__ == "__main__":
    main()
