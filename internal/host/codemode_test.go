package host_test

import (
	"strings"
	"testing"
)

// Verbs are ordinary Python in a cell: named functions with signatures and manuals
// made from the registry, and errors that say what has become of the act.
func TestVerbsArePythonInACell(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-034 CP-133")
	r := newRig(t)
	c := r.open(t)
	res := r.run(t, c, "s", `
import inspect
from reeve import verbs, VerbError
print("workspace" in dir(verbs), "read" in dir(verbs.workspace))
print(inspect.signature(verbs.workspace.edit).parameters["path"].default is inspect.Parameter.empty)
print("Replaces a text in a file." in verbs.workspace.edit.__doc__, "old (string)" in verbs.workspace.edit.__doc__)
print((await verbs.workspace.write(path="a", content="1"))["files"][0]["path"])
try:
    await verbs.workspace.edit(path="a", old="2", new="3")
except VerbError as error:
    print(error.code, error.disposition, bool(error.next), error.entry["ok"])
try:
    await verbs.workspace.edit(path="a")
except VerbError as error:
    print(error.code, error.disposition)
envelope = await verbs.request('workspace.read(path="a") | evidence.resolve(refs=["event:1"])')
print(envelope["status"], envelope["results"][0]["result"]["text"], envelope["results"][1]["result"]["items"][0]["kind"])
`)
	want := "True True\nTrue\nTrue True\na\nconflict not_committed True False\ninvalid_input not_committed\nsuccess 1 session.opened\n"
	var got strings.Builder
	for _, o := range res.Output {
		got.WriteString(o.Text)
	}
	if got.String() != want {
		t.Errorf("%s %v\n%s", res.Status, res.Error, got.String())
	}
}
