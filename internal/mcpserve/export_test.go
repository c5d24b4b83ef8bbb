package mcpserve

import "github.com/modelcontextprotocol/go-sdk/mcp"

// InTools is inTools.
var InTools = inTools

// Extended is o with more tools and resources than reeve's own.
func Extended(o Options, register func(*mcp.Server)) Options {
	o.extend = register
	return o
}

// CloseAll ends every session of w.
func (w *Web) CloseAll() <-chan struct{} { return w.closeAll() }
