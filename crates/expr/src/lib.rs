//! Parses and evaluates Harness expressions, `<+...>`. Pure.
