package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/configid"
)

// One directory has one identity, whoever asks and however it is spelled; another
// directory or a setting that decides what a request means makes another.
func TestIdentityComesFromFilesAlone(t *testing.T) {
	t.Attr("requirement", "VD-133 VD-131")
	// Not parallel: it changes the environment.
	dir := t.TempDir()
	of := func(dir string) (string, configid.Print) {
		t.Helper()
		i, err := config.Identity(dir)
		if err != nil {
			t.Fatal(err)
		}
		id, err := i.ID()
		if err != nil {
			t.Fatal(err)
		}
		p, err := i.Print()
		if err != nil {
			t.Fatal(err)
		}
		return id, p
	}
	plain, print := of(dir)
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	write(filepath.Join(home, "reeve", "config.toml"), "[worker]\npython = \"/home-of-one/python\"\n")
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("REEVE_WORKER_PYTHON", "/elsewhere/python")
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(dir, alias); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "config.toml"), "[log]\nlevel = \"debug\"\n\n[limits]\nqueue = 3\n")
	for name, spelled := range map[string]string{"environment, home and limits": dir, "a link": alias, "dots": dir + "/./"} {
		if id, _ := of(spelled); id != plain {
			t.Errorf("%s makes another identity", name)
		}
	}
	write(filepath.Join(dir, "config.toml"), "[worker]\npython = \"/usr/bin/python3\"\n")
	_, other := of(dir)
	if got := configid.Diff(print, other); len(got) != 1 || got[0] != "worker.python" {
		t.Errorf("another Python differs in %v", got)
	}
	_, elsewhere := of(t.TempDir())
	if got := configid.Diff(print, elsewhere); len(got) != 1 || got[0] != "store" {
		t.Errorf("another directory differs in %v", got)
	}
	write(filepath.Join(dir, "config.toml"), "[nonsense]\nx = 1\n")
	if _, err := config.Identity(dir); err == nil {
		t.Error("a broken file has an identity")
	}
}
