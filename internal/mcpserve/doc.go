// Package mcpserve is the front end that an MCP client starts: it speaks the
// Model Context Protocol on two byte streams and forwards to the core.
//
// Invariants: the out stream carries nothing but JSON-RPC messages, one a line,
// whatever the input and whatever panics; the front end outlives the core and
// never sends a cell twice; isError stands only for what reeve itself could not
// do, never for code that raised; every result of a cell names its handle and its
// session. The package does not know how a cell runs or how it is recorded: it has
// only control.Service.
package mcpserve
