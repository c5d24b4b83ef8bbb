package mcpserve

// InTools is inTools.
var InTools = inTools
