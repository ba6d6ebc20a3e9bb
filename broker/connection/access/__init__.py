"""Access of one connection: authentication, authorization, and revocation of both."""
