package workspace

import "github.com/reeve-run/reeve/verbs"

var (
	atPath = verbs.Param{Name: "path", Type: verbs.Text, Required: true, Fact: verbs.FactPath, Description: "Path in the workspace, relative to its root."}
	asSeen = verbs.Param{Name: "expected_sha256", Type: verbs.Text, Description: "Refuse when the file's content has another digest; empty text: when it exists."}
	dryRun = verbs.Param{Name: "dry_run", Type: verbs.Boolean, Fact: verbs.FactDryRun, Description: "Answer the diff and change nothing."}
)

func specs() []verbs.Spec {
	where := atPath
	where.Required, where.Description = false, "Directory in the workspace; default its root."
	look := func(name, does string, params ...verbs.Param) verbs.Spec {
		return verbs.Spec{Name: name, Description: does, Visibility: verbs.Public, Category: verbs.Assertive, Effect: verbs.Read, Params: params}
	}
	change := func(name, does string, params ...verbs.Param) verbs.Spec {
		return verbs.Spec{
			Name: name, Description: does, Visibility: verbs.Public, Category: verbs.Commissive, Effect: verbs.Workspace, Params: params,
		}
	}
	return []verbs.Spec{
		look("workspace.info", "Tells the root, version control state, limits, and what may be done now."),
		look("workspace.read", "Reads a text file, or a part of it by lines.", atPath,
			verbs.Param{Name: "offset", Type: verbs.Integer, Description: "First line, from 1; default 1."},
			verbs.Param{Name: "limit", Type: verbs.Integer, Description: "How many lines; default as many as fit 262144 bytes."}),
		look("workspace.list", "Lists files and directories.", where,
			verbs.Param{Name: "depth", Type: verbs.Integer, Description: "How deep, from 1; default 1, at most 20."},
			verbs.Param{Name: "glob", Type: verbs.Text, Description: "Only names that match, such as *.go."},
			verbs.Param{Name: "hidden", Type: verbs.Boolean, Description: "Also names that begin with a dot; default false."}),
		look("workspace.search", "Finds lines that match a regular expression (RE2).",
			verbs.Param{Name: "pattern", Type: verbs.Text, Required: true, Description: "RE2 expression, or plain text with literal."},
			where,
			verbs.Param{Name: "literal", Type: verbs.Boolean, Description: "The pattern is plain text; default false."},
			verbs.Param{Name: "glob", Type: verbs.Text, Description: "Only files whose name matches."},
			verbs.Param{Name: "limit", Type: verbs.Integer, Description: "How many matches; default 100, at most 500."}),
		change("workspace.write", "Writes a whole file, which it makes when it does not exist.", atPath,
			verbs.Param{Name: "content", Type: verbs.Text, Required: true, Fact: verbs.FactBytes, Description: "The whole text, at most 16 MiB."},
			asSeen, dryRun),
		change("workspace.edit", "Replaces a text in a file.", atPath,
			verbs.Param{Name: "old", Type: verbs.Text, Required: true, Description: "Text that stands in the file."},
			verbs.Param{Name: "new", Type: verbs.Text, Required: true, Fact: verbs.FactBytes, Description: "Text in its place."},
			verbs.Param{Name: "count", Type: verbs.Integer, Description: "How often old must stand there; all are replaced; default 1."},
			asSeen, dryRun),
		change("workspace.apply_patch", "Applies a unified diff to one file or several, wholly or not at all.",
			verbs.Param{Name: "patch", Type: verbs.Text, Required: true, Fact: verbs.FactBytes, Description: "Unified diff, at most 100 files; /dev/null as the old name makes a file, as the new one removes it."},
			dryRun),
		change("workspace.move", "Renames a file.",
			verbs.Param{Name: "from", Type: verbs.Text, Required: true, Fact: verbs.FactPaths, Description: "Path of the file now."},
			verbs.Param{Name: "to", Type: verbs.Text, Required: true, Fact: verbs.FactPaths, Description: "Path it gets; nothing may be there."},
			asSeen, dryRun),
		change("workspace.remove", "Removes a file.", atPath, asSeen, dryRun),
		change("workspace.undo", "Puts back what an act changed, when nothing has changed it since.",
			verbs.Param{Name: "act", Type: verbs.Text, Required: true, Description: "Id of the act, or a unique beginning of it."}, dryRun),
		{
			Name: "workspace.run", Description: "Runs a program without a shell and answers how it ended and what it printed; all it started ends with it.",
			Visibility: verbs.Public, Category: verbs.Directive, Effect: verbs.Workspace, Timeout: maxRunTime + runGrace,
			Params: []verbs.Param{
				{Name: "argv", Type: verbs.Texts, Required: true, Fact: verbs.FactArgv, Description: "The program and its arguments, 1 to 256."},
				{Name: "cwd", Type: verbs.Text, Fact: verbs.FactPath, Description: "Directory in the workspace; default its root."},
				{Name: "env", Type: verbs.Struct, Description: "Variables added to a scrubbed base environment; values are text."},
				{Name: "timeout_ms", Type: verbs.Integer, Description: "End it after this long, 1 to 3600000; default 120000."},
				{Name: "max_output_bytes", Type: verbs.Integer, Description: "Of both streams together, 1 to 1000000; default 750000."},
			},
		},
	}
}
