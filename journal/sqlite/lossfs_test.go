package sqlite_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/reeve-run/reeve/internal/reevetest"
)

// lossFS is a file system that forgets at a power cut what was not synced, as a
// disk with a volatile cache does. Names are durable at once; bytes and sizes are
// after fsync only.
//
// It lives in the test's process and its user in another: SQLite maps a file of
// it, and a page fault in this process could wait for a server that cannot run.
type lossFS struct {
	fs.Inode
	mu       sync.Mutex
	files    map[string]*lossFile
	cut      bool // the power is gone: nothing works
	syncs    int
	failSync int // this many syncs fail, and forget that anything was dirty
	full     bool
}

const lossPage = 4096

type lossFile struct {
	fs.Inode
	root  *lossFS
	data  []byte // as programs see it
	disk  []byte // as it is after a power cut
	dirty map[int]bool
}

var (
	_ fs.NodeCreater   = (*lossFS)(nil)
	_ fs.NodeUnlinker  = (*lossFS)(nil)
	_ fs.NodeFsyncer   = (*lossFS)(nil)
	_ fs.NodeOpener    = (*lossFile)(nil)
	_ fs.NodeReader    = (*lossFile)(nil)
	_ fs.NodeWriter    = (*lossFile)(nil)
	_ fs.NodeGetattrer = (*lossFile)(nil)
	_ fs.NodeSetattrer = (*lossFile)(nil)
	_ fs.NodeFsyncer   = (*lossFile)(nil)
)

// mountLoss mounts an empty lossFS and unmounts it with the test.
func mountLoss(t *testing.T) (*lossFS, string) {
	t.Helper()
	_, err := os.Stat("/dev/fuse")
	reevetest.Need(t, err == nil && os.Geteuid() == 0, "/dev/fuse and the right to mount, for a file system that loses power")
	l := &lossFS{files: map[string]*lossFile{}}
	dir := t.TempDir()
	server, err := mountAlone(dir, l)
	reevetest.Need(t, err == nil, "permission to open /dev/fuse and mount it")
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
		server.Wait()
	})
	return l, dir
}

// mountAlone mounts and keeps the server's descriptor, which go-fuse opens without
// close-on-exec, from the child that will use the file system: it would keep alive
// a file system whose server is gone, and wait for it for ever.
func mountAlone(dir string, root fs.InodeEmbedder) (*fuse.Server, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	server, err := fs.Mount(dir, root, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "loss"}})
	if err != nil {
		return nil, err
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, errors.Join(err, server.Unmount())
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err != nil || to != "/dev/fuse" {
			continue // not ours, or closed since it was listed
		}
		n, err := strconv.Atoi(fd.Name())
		if err != nil {
			return nil, errors.Join(err, server.Unmount())
		}
		syscall.CloseOnExec(n)
	}
	return server, nil
}

func (l *lossFS) Create(ctx context.Context, name string, _ uint32, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, nil, 0, syscall.EIO
	}
	f := &lossFile{root: l, dirty: map[int]bool{}}
	l.files[name] = f
	out.Mode = mode
	return l.NewInode(ctx, f, fs.StableAttr{Mode: fuse.S_IFREG}), nil, 0, 0
}

func (l *lossFS) Unlink(_ context.Context, name string) syscall.Errno {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return syscall.EIO
	}
	delete(l.files, name)
	return 0
}

// Fsync of the directory has nothing to do: names are durable at once.
func (l *lossFS) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return 0 }

func (f *lossFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (f *lossFile) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	f.root.mu.Lock()
	defer f.root.mu.Unlock()
	if f.root.cut {
		return nil, syscall.EIO
	}
	n := 0
	if off < int64(len(f.data)) {
		n = copy(dest, f.data[off:])
	}
	return fuse.ReadResultData(dest[:n]), 0
}

func (f *lossFile) Write(_ context.Context, _ fs.FileHandle, b []byte, off int64) (uint32, syscall.Errno) {
	f.root.mu.Lock()
	defer f.root.mu.Unlock()
	end := int(off) + len(b)
	switch {
	case f.root.cut:
		return 0, syscall.EIO
	case f.root.full && end > len(f.data):
		return 0, syscall.ENOSPC
	}
	f.data = resized(f.data, max(end, len(f.data)))
	copy(f.data[off:], b)
	for page := int(off) / lossPage; page <= (end-1)/lossPage; page++ {
		f.dirty[page] = true
	}
	return uint32(len(b)), 0
}

func (f *lossFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.root.mu.Lock()
	defer f.root.mu.Unlock()
	out.Mode, out.Size = 0o600, uint64(len(f.data))
	return 0
}

func (f *lossFile) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	f.root.mu.Lock()
	defer f.root.mu.Unlock()
	if f.root.cut {
		return syscall.EIO
	}
	if size, ok := in.GetSize(); ok {
		f.data = resized(f.data, int(size))
	}
	out.Mode, out.Size = 0o600, uint64(len(f.data))
	return 0
}

func (f *lossFile) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	f.root.mu.Lock()
	defer f.root.mu.Unlock()
	if f.root.cut {
		return syscall.EIO
	}
	f.root.syncs++
	if f.root.failSync > 0 {
		f.root.failSync--
		clear(f.dirty)
		return syscall.EIO
	}
	f.disk = resized(f.disk, len(f.data))
	for page := range f.dirty {
		f.keep(page)
	}
	clear(f.dirty)
	return 0
}

// keep puts one page to the disk.
func (f *lossFile) keep(page int) {
	from, to := page*lossPage, min((page+1)*lossPage, len(f.data))
	if from >= to {
		return // cut off since
	}
	f.disk = resized(f.disk, max(to, len(f.disk)))
	copy(f.disk[from:to], f.data[from:to])
}

// resized makes b size bytes long, with zeros where it grows.
func resized(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size]
	}
	if size <= cap(b) {
		grown := b[:size]
		clear(grown[len(b):])
		return grown
	}
	return append(make([]byte, 0, 2*size), append(b, make([]byte, size-len(b))...)...)
}

// powerCut stops the file system and writes what the disk would hold into dir.
// With half, each page that was not synced has an even chance of being there.
func (l *lossFS) powerCut(t *testing.T, dir string, half *rand.Rand) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for name, f := range l.files {
		if filepath.Ext(name) == ".db-shm" {
			continue // memory of the processes that are gone
		}
		if half != nil {
			for page := range f.dirty {
				if half.IntN(2) == 0 {
					f.keep(page)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), f.disk, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *lossFS) set(change func(*lossFS)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}
