"""Hashes of htpasswd files: apr1 (`htpasswd -m`), and crypt (`htpasswd -d`) where the system has it. Pure but for that.

Compared in constant time. Apache's AuthenticationProviderBasic reads the same.
"""

import ctypes
import ctypes.util
import hashlib
import hmac
from functools import cache

_ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ROUNDS = 1000
_APR1 = "$apr1$"


def is_readable(stored: str) -> bool:
    """Whether `matches` can tell, of a hash as it stands in the file."""
    return (stored.startswith(_APR1) and stored.count("$") == 3) or (len(stored) == 13 and "$" not in stored and has_crypt())


def matches(password: str, stored: str) -> bool:
    computed = apr1(password, stored.split("$")[2]) if stored.startswith(_APR1) else _crypt(password, stored[:2])
    return hmac.compare_digest(computed.encode(), stored.encode())


def apr1(password: str, salt: str) -> str:
    """The MD5-based form of Apache's web server: `$apr1$salt$hash`."""
    secret, pepper = password.encode(), salt[:8].encode()
    inner = hashlib.md5(secret + pepper + secret).digest()
    first = secret + _APR1.encode() + pepper
    first += (inner * (len(secret) // 16 + 1))[: len(secret)]
    bits = len(secret)
    while bits:
        first += b"\0" if bits & 1 else secret[:1]
        bits >>= 1
    digest = hashlib.md5(first).digest()
    for step in range(_ROUNDS):
        digest = hashlib.md5(_round(step, digest, secret, pepper)).digest()
    return f"{_APR1}{pepper.decode()}${_encoded(digest)}"


def _round(step: int, digest: bytes, secret: bytes, pepper: bytes) -> bytes:
    middle = (pepper if step % 3 else b"") + (secret if step % 7 else b"")
    return secret + middle + digest if step & 1 else digest + middle + secret


def _encoded(digest: bytes) -> str:
    groups = [(digest[a], digest[b], digest[c]) for a, b, c in ((0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5))]
    text = "".join(_letters(high << 16 | middle << 8 | low, 4) for high, middle, low in groups)
    return text + _letters(digest[11], 2)


def _letters(value: int, count: int) -> str:
    return "".join(_ALPHABET[value >> 6 * index & 63] for index in range(count))


@cache
def _library() -> ctypes.CDLL | None:
    name = ctypes.util.find_library("crypt")
    if name is None:
        return None
    library = ctypes.CDLL(name)
    library.crypt.restype = ctypes.c_char_p
    library.crypt.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    return library


def has_crypt() -> bool:
    """The system's libcrypt, for the DES form alone."""
    return _library() is not None


def _crypt(password: str, salt: str) -> str:
    library = _library()
    found = None if library is None or "\0" in password else library.crypt(password.encode(), salt.encode())
    return found.decode() if found else ""
