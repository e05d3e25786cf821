// SPDX-License-Identifier: Apache-2.0
//
// interop.go - reads the log of sample.c with Go's own packages for signed
// notes and transparent logs (Debian's golang-golang-x-mod-dev).
//
//	interop DIRECTORY
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

var dir string

func must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "interop: %s: %v\n", what, err)
		os.Exit(1)
	}
}

func mustNot(err error, what string) {
	if err == nil {
		fmt.Fprintf(os.Stderr, "interop: accepted: %s\n", what)
		os.Exit(1)
	}
}

func read(name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	must(err, name)
	return string(data)
}

// The tree head of a signed checkpoint, by the specification: origin, size,
// root. (tlog.ParseTree wants another first line.)
func open(data string, verifier note.Verifier) tlog.Tree {
	n, err := note.Open([]byte(data), note.VerifierList(verifier))
	must(err, "note.Open")
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[0] != verifier.Name() || lines[3] != "" {
		must(fmt.Errorf("%q", n.Text), "checkpoint")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err, "size")
	root, err := tlog.ParseHash(lines[2])
	must(err, "root")
	return tlog.Tree{N: size, Hash: root}
}

func hashes(text string) (list []tlog.Hash) {
	for _, line := range strings.Split(text, "\n") {
		if line == "" {
			break
		}
		hash, err := tlog.ParseHash(line)
		must(err, "hash")
		list = append(list, hash)
	}
	return
}

// Every subtree, as Go stores them.
type store []tlog.Hash

func (s store) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, index := range indexes {
		list = append(list, s[index])
	}
	return
}

func checkProof(i int64, line []byte, verifier note.Verifier, last tlog.Tree) {
	file := read(fmt.Sprintf("%d.tlog-proof", i))
	head := fmt.Sprintf("c2sp.org/tlog-proof@v1\nindex %d\n", i)
	if !strings.HasPrefix(file, head) {
		must(fmt.Errorf("%q", file), "proof")
	}
	file = strings.TrimPrefix(file, head)
	at := strings.Index("\n"+file, "\n\n")
	proof := tlog.RecordProof(hashes(file[:at]))
	tree := open(file[at+1:], verifier)
	if tree != last {
		must(fmt.Errorf("%v", tree), "tree")
	}
	must(tlog.CheckRecord(proof, tree.N, tree.Hash, i,
		tlog.RecordHash(line)), "CheckRecord")
	mustNot(tlog.CheckRecord(proof, tree.N, tree.Hash, i,
		tlog.RecordHash(append([]byte("x"), line...))), "another record")
}

func main() {
	dir = os.Args[1]
	verifier, err := note.NewVerifier(strings.TrimSpace(read("key.vkey")))
	must(err, "key.vkey")
	lines := bytes.Split([]byte(strings.TrimSpace(read("audit.jsonl"))),
		[]byte("\n"))
	last := open(read(fmt.Sprintf("checkpoint.%d", len(lines))), verifier)

	var stored store
	for i, line := range lines {
		more, err := tlog.StoredHashes(int64(i), line, stored)
		must(err, "StoredHashes")
		stored = append(stored, more...)
		root, err := tlog.TreeHash(int64(i+1), stored)
		must(err, "TreeHash")
		tree := open(read(fmt.Sprintf("checkpoint.%d", i+1)), verifier)
		if tree.N != int64(i+1) || tree.Hash != root {
			must(fmt.Errorf("%v", tree), "root")
		}
		checkProof(int64(i), line, verifier, last)
		proof := hashes(read(fmt.Sprintf("consistency.%d", i+1)))
		must(tlog.CheckTree(proof, last.N, last.Hash, tree.N, tree.Hash),
			"CheckTree")
		tree.Hash[0] ^= 1
		mustNot(tlog.CheckTree(proof, last.N, last.Hash, tree.N,
			tree.Hash), "another tree")
	}
	forged := strings.Replace(read("checkpoint.1"), "\n1\n", "\n2\n", 1)
	_, err = note.Open([]byte(forged), note.VerifierList(verifier))
	mustNot(err, "another size")
	fmt.Printf("interop: Go agrees on %d records\n", len(lines))
}
