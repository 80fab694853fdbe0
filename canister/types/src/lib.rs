//! Candid types of the icsql canister, shared by the service, its clients and the tests.
