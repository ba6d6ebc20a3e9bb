//! Holds the tests of the Rust client (crate `pulsar`); no code of its own.
