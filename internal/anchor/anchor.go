// Package anchor writes signed heads of the journal to files and reads them back
// for verification.
//
// Invariants: the private key is made on first use, readable by its owner only; a
// note is complete on the disk before Take returns; a note that cannot be trusted
// is reported and never silently left out. The form of notes is specified in
// docs/format/journal.md. The package does not know engines.
package anchor

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/journal"
)

// KeyName is the name that signatures carry.
const KeyName = "reeve-journal"

const (
	secretFile = "key"     // signer key, mode 0600
	publicFile = "key.pub" // verifier key
	noteSuffix = ".note"
	listSuffix = ".heads"
	stamp      = "20060102T150405.000Z"
)

// Dir is a directory of anchors.
type Dir struct{ path string }

// In returns the anchors kept in a directory, which is made on first use.
func In(path string) Dir { return Dir{path} }

// Taken tells what was signed.
type Taken struct {
	Path    string // of the note
	Key     string // verifier key, to be kept elsewhere
	Streams int64
	Events  int64
	AtMS    int64
}

// Take signs where all streams end now.
func (d Dir) Take(ctx context.Context, s journal.Store, now time.Time) (Taken, error) {
	signer, key, err := d.signer()
	if err != nil {
		return Taken{}, err
	}
	a, err := journal.TakeAnchor(ctx, s, now.UnixMilli())
	if err != nil {
		return Taken{}, err
	}
	signed, err := note.Sign(&note.Note{Text: string(a.Text())}, signer)
	if err != nil {
		return Taken{}, fault.Wrap(err, fault.Internal, "sign heads", d.path)
	}
	base := filepath.Join(d.path, now.UTC().Format(stamp))
	if _, err := os.Stat(base + noteSuffix); err == nil {
		return Taken{}, fault.New(fault.Conflict, "sign heads", base+noteSuffix, "a note of this millisecond exists").Retryable()
	}
	// The list first: a note without its list could not be checked.
	if err := durable.WriteFile(base+listSuffix, a.List(), 0o600); err != nil {
		return Taken{}, err
	}
	if err := durable.WriteFile(base+noteSuffix, signed, 0o600); err != nil {
		return Taken{}, err
	}
	return Taken{Path: base + noteSuffix, Key: key, Streams: int64(len(a.Heads)), Events: a.Events, AtMS: a.AtMS}, nil
}

// signer reads the key, making it on first use.
func (d Dir) signer() (note.Signer, string, error) {
	if err := durable.MkdirAll(d.path, 0o700); err != nil {
		return nil, "", err
	}
	secret := filepath.Join(d.path, secretFile)
	b, err := os.ReadFile(secret)
	if errors.Is(err, fs.ErrNotExist) {
		return d.newKey(secret)
	}
	if err != nil {
		return nil, "", fault.Wrap(err, fault.Unavailable, "read signing key", secret)
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(b)))
	if err != nil {
		return nil, "", fault.Wrap(err, fault.Altered, "read signing key", secret).
			WithNext("restore %s from a backup; without it old notes can be checked but none made", secret)
	}
	key, err := d.Key()
	return signer, key, err
}

// newKey writes the public key first: were only the secret one there, its notes
// could not be checked.
func (d Dir) newKey(secret string) (note.Signer, string, error) {
	if d.hasNotes() {
		return nil, "", fault.New(fault.Altered, "make signing key", secret, "the key is gone but its notes are there").
			WithNext("restore %s from a backup, or move the notes away", secret)
	}
	skey, vkey, err := note.GenerateKey(rand.Reader, KeyName)
	if err != nil {
		return nil, "", fault.Wrap(err, fault.Internal, "make signing key", secret)
	}
	if err := durable.WriteFile(filepath.Join(d.path, publicFile), []byte(vkey+"\n"), 0o644); err != nil {
		return nil, "", err
	}
	if err := durable.WriteFile(secret, []byte(skey+"\n"), 0o600); err != nil {
		return nil, "", err
	}
	signer, err := note.NewSigner(skey)
	if err != nil {
		return nil, "", fault.Wrap(err, fault.Internal, "make signing key", secret)
	}
	return signer, vkey, nil
}

// Key is the verifier key that lies beside the notes.
func (d Dir) Key() (string, error) {
	path := filepath.Join(d.path, publicFile)
	b, err := os.ReadFile(path)
	if err != nil {
		code := fault.Unavailable
		if errors.Is(err, fs.ErrNotExist) {
			code = fault.NotFound
		}
		return "", fault.Wrap(err, code, "read verifier key", path)
	}
	return strings.TrimSpace(string(b)), nil
}

func (d Dir) hasNotes() bool {
	names, err := d.notes()
	return err == nil && len(names) > 0
}

// notes returns the paths of the notes, oldest first.
func (d Dir) notes() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "read anchors", d.path)
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), noteSuffix) {
			paths = append(paths, filepath.Join(d.path, e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// Load reads every note, checked with key, or with the key beside them when key is
// empty. Each problem names its note; code fault.Altered means that what was signed
// was changed, any other that it could not be checked.
func (d Dir) Load(key string) (anchors []journal.Anchor, problems []error) {
	paths, err := d.notes()
	if err != nil {
		return nil, []error{err}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	if key == "" {
		if key, err = d.Key(); err != nil {
			return nil, []error{err}
		}
	}
	for _, path := range paths {
		a, err := Read(path, key)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		anchors = append(anchors, a)
	}
	return anchors, problems
}

// Newest is the latest note that can be trusted, with its path, which is empty when
// there is none. problems are those of later ones.
func (d Dir) Newest() (a journal.Anchor, path string, problems []error) {
	paths, err := d.notes()
	if err != nil {
		return a, "", []error{err}
	}
	if len(paths) == 0 {
		return a, "", nil
	}
	key, err := d.Key()
	if err != nil {
		return a, "", []error{err}
	}
	for _, path := range slices.Backward(paths) {
		a, err := Read(path, key)
		if err == nil {
			return a, path, problems
		}
		problems = append(problems, err)
	}
	return a, "", problems
}

// Read reads one note and the list beside it, and checks both with key.
func Read(path, key string) (journal.Anchor, error) {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return journal.Anchor{}, fault.Wrap(err, fault.InvalidRequest, "read anchor", path).WithNext("give the verifier key that reeve anchor printed")
	}
	signed, err := os.ReadFile(path)
	if err != nil {
		return journal.Anchor{}, fault.Wrap(err, fault.Unavailable, "read anchor", path)
	}
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return journal.Anchor{}, distrusted(err, path)
	}
	head, err := journal.ParseAnchorText([]byte(n.Text))
	if err != nil {
		return journal.Anchor{}, fault.Wrap(err, fault.Altered, "read anchor", path)
	}
	listPath := strings.TrimSuffix(path, noteSuffix) + listSuffix
	list, err := os.ReadFile(listPath)
	if err != nil {
		return journal.Anchor{}, fault.Wrap(err, fault.Unavailable, "read anchor", listPath)
	}
	a, err := journal.ParseAnchorList(head, list)
	if err != nil {
		return journal.Anchor{}, fault.Wrap(err, fault.Altered, "read anchor", listPath)
	}
	return a, nil
}

// distrusted tells a note signed by another key, which proves nothing, from one
// whose text or signature was changed.
func distrusted(err error, path string) error {
	var unverified *note.UnverifiedNoteError
	if errors.As(err, &unverified) {
		return fault.Wrap(err, fault.Unavailable, "read anchor", path).WithNext("check with the verifier key of the note")
	}
	return fault.Wrap(err, fault.Altered, "read anchor", path)
}

// Verify checks a store: how it is kept, where the engine can tell, then the chain,
// then the notes. A problem with a note is a finding like any other.
func (d Dir) Verify(ctx context.Context, s journal.Store, key string) journal.Report {
	anchors, problems := d.Load(key)
	if c, ok := s.(journal.Checker); ok {
		if err := c.CheckStructure(ctx); err != nil {
			problems = append(problems, err)
		}
	}
	return journal.Verify(ctx, s, anchors, problems...)
}
