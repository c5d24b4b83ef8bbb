// Command mcp measures one call over standard input and output: of a bare server of
// the SDK, of two servers that others publish, and of reeve's request tool, all in
// one run with the same client and protocol version 2025-11-25.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const protocol = "2025-11-25"

func main() {
	calls := flag.Int("calls", 1500, "calls of each peer in a round")
	rounds := flag.Int("rounds", 5, "rounds, in which the peers take turns")
	starts := flag.Int("starts", 15, "starts of each peer to its answer to initialize")
	reeve := flag.String("reeve", "", "the binary of reeve")
	node := flag.String("node", "", "directory with node_modules; empty leaves the peers of Node out")
	flag.Parse()
	if flag.Arg(0) == "echo" {
		if err := echo(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := run(*calls, *rounds, *starts, *reeve, *node); err != nil {
		fmt.Fprintln(os.Stderr, "mcp:", err)
		os.Exit(1)
	}
}

type text struct {
	Message string `json:"message"`
}

// echo is the least that a server of the SDK does for a call.
func echo() error {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, nil, nil
	})
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// peer is a server to start and the call that is made of it.
type peer struct {
	name    string
	command []string
	tool    string
	args    map[string]any
	took    []time.Duration // of calls
	began   []time.Duration // from start to the answer to initialize
}

func run(calls, rounds, starts int, reeve, node string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	peers := []*peer{{name: "bare SDK echo", command: []string{self, "echo"}, tool: "echo", args: map[string]any{"message": "hello"}}}
	if node != "" {
		modules := filepath.Join(node, "node_modules")
		bin := filepath.Join(modules, ".bin/node")
		if _, err := os.Stat(bin); err != nil {
			bin = "node"
		}
		peers = append(peers,
			&peer{name: "server-everything echo", command: []string{bin, filepath.Join(modules, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}, tool: "echo", args: map[string]any{"message": "hello"}},
			&peer{name: "server-memory read_graph", command: []string{bin, filepath.Join(modules, "@modelcontextprotocol/server-memory/dist/index.js")}, tool: "read_graph", args: map[string]any{}})
	}
	if reeve != "" {
		for _, reads := range []string{"async", "sync"} {
			dir, down, err := core(reeve, reads)
			if err != nil {
				return err
			}
			defer down()
			peers = append(peers, &peer{name: "reeve request, audit.reads " + reads, command: []string{reeve, "mcp", "--dir", dir}, tool: "request", args: map[string]any{"ops": "whoami()"}})
			if reads == "sync" {
				peers = append(peers, &peer{
					name: "reeve request, a write", command: []string{reeve, "mcp", "--dir", dir}, tool: "request",
					args: map[string]any{"ops": `workspace.write(path="mcp-bench.txt", content="hello")`},
				})
			}
		}
	}
	for range rounds {
		for _, p := range peers {
			if err := p.round(calls); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	for range starts {
		for _, p := range peers {
			if err := p.round(0); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return table(peers)
}

// core starts a core of reeve of its own and returns how to stop it.
func core(reeve, reads string) (dir string, down func(), err error) {
	dir, err = os.MkdirTemp("", "rvm")
	if err != nil {
		return "", nil, err
	}
	settings := "[audit]\nreads = \"" + reads + "\"\n"
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(settings), 0o600); err != nil {
		return "", nil, err
	}
	out, err := exec.Command(reeve, "up", "--dir", dir).CombinedOutput()
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("start core: %w: %s", err, out), os.RemoveAll(dir))
	}
	return dir, func() {
		if out, err := exec.Command(reeve, "down", "--dir", dir).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "stop core: %v: %s\n", err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}, nil
}

// round starts the peer, in a directory of its own, and makes its calls.
func (p *peer) round(calls int) error {
	work, err := os.MkdirTemp("", "rvw")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "MEMORY_FILE_PATH="+filepath.Join(work, "memory.json"))
	begin := time.Now()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).
		Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return err
	}
	defer cs.Close()
	p.began = append(p.began, time.Since(begin))
	if v := cs.InitializeResult().ProtocolVersion; v != protocol {
		return fmt.Errorf("speaks %s", v)
	}
	warm := min(calls, 100)
	for i := range calls + warm {
		begin := time.Now()
		res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: p.tool, Arguments: p.args})
		took := time.Since(begin)
		if err != nil {
			return err
		}
		if res.IsError {
			return fmt.Errorf("the call failed: %v", res.Content[0].(*mcp.TextContent).Text)
		}
		if i >= warm {
			p.took = append(p.took, took)
		}
	}
	return nil
}

func table(peers []*peer) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "call over stdio, %s\tp50\tp99\tof bare\tstart p50\n", protocol)
	bare := at(peers[0].took, 50)
	for _, p := range peers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\n", p.name, at(p.took, 50).Round(time.Microsecond), at(p.took, 99).Round(time.Microsecond),
			float64(at(p.took, 50))/float64(bare), at(p.began, 50).Round(100*time.Microsecond))
	}
	return w.Flush()
}

// at is a percentile.
func at(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
