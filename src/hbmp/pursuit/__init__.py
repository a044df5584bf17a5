"""Binary matrix pursuit: target codes for the items of any neighbourhood (stage one of the paper)."""

from hbmp.pursuit.codebook import CodeBook
from hbmp.pursuit.pursuit import infer_codes

__all__ = ["CodeBook", "infer_codes"]
