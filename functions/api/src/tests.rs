//! Through the router, as the clients send it.
