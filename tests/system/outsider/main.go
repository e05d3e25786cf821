// SPDX-License-Identifier: Apache-2.0
//
// outsider - verifies what a session left with nothing of ours: Go's own
// packages for signed notes and transparent logs (Debian's
// golang-golang-x-mod-dev), its JSON and its SHA-256.
//
//	outsider DIRECTORY [PROOF RECORD-NUMBER]
//
// PROOF is a C2SP tlog-proof of that record. Prints a line and exits with 0 if
// everything fits, with 1 at the first thing that does not.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

var dir string

func fail(format string, args ...interface{}) {
	fmt.Fprintf(os.Stderr, "outsider: "+format+"\n", args...)
	os.Exit(1)
}

func read(name string) []byte {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		fail("%v", err)
	}
	return data
}

// The records of all parts, in order, and the digest of each part.
func records() (lines [][]byte, digests map[string]string) {
	parts, _ := filepath.Glob(filepath.Join(dir, "audit.jsonl.[0-9]*"))
	sort.Strings(parts)
	parts = append(parts, filepath.Join(dir, "audit.jsonl"))
	digests = map[string]string{}
	for _, part := range parts {
		name := filepath.Base(part)
		data := read(name)
		sum := sha256.Sum256(data)
		digests[name] = hex.EncodeToString(sum[:])
		if len(data) == 0 {
			continue
		}
		if data[len(data)-1] != '\n' {
			fail("%s ends in the middle of a line", name)
		}
		lines = append(lines,
			bytes.Split(data[:len(data)-1], []byte("\n"))...)
	}
	return
}

// The head of a tree: origin, size, root. (tlog.ParseTree wants another first
// line than C2SP's.)
func open(data []byte, verifier note.Verifier) tlog.Tree {
	n, err := note.Open(data, note.VerifierList(verifier))
	if err != nil {
		fail("%v: %q", err, data)
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[0] != verifier.Name() || lines[3] != "" {
		fail("no checkpoint of %s: %q", verifier.Name(), n.Text)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		fail("%v", err)
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		fail("%v", err)
	}
	return tlog.Tree{N: size, Hash: root}
}

// Every subtree, as Go stores them.
type store []tlog.Hash

func (s store) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, index := range indexes {
		list = append(list, s[index])
	}
	return
}

func grow(lines [][]byte) (stored store) {
	for i, line := range lines {
		more, err := tlog.StoredHashes(int64(i), line, stored)
		if err != nil {
			fail("%v", err)
		}
		stored = append(stored, more...)
	}
	return
}

// Checks each checkpoint against the records; returns the last.
func checkpoints(verifier note.Verifier, stored store, n int64) (int, []byte) {
	lines := bytes.SplitAfter(read("checkpoints"), []byte("\n"))
	count, last, size := 0, []byte(nil), int64(-1)
	for at := 0; at+5 < len(lines); at += 5 {
		data := bytes.Join(lines[at:at+5], nil)
		tree := open(data, verifier)
		if tree.N > n || tree.N <= size {
			fail("a checkpoint of %d records after %d, of %d",
				tree.N, size, n)
		}
		root, err := tlog.TreeHash(tree.N, stored)
		if err != nil || root != tree.Hash {
			fail("the root of %d records is another one", tree.N)
		}
		count, last, size = count+1, data, tree.N
	}
	if len(lines)%5 != 1 || len(lines[len(lines)-1]) != 0 {
		fail("checkpoints ends in the middle of one")
	}
	return count, last
}

type receipt struct {
	Subject []struct {
		Name   string
		Digest map[string]string
	}
	Predicate struct {
		Session string
		Log     struct {
			Records         int64
			Root            string
			Last_checkpoint string
		}
	}
}

// DSSE: signed are the type and the body, told apart by their lengths.
func openReceipt(verifier note.Verifier) (r receipt) {
	var envelope struct {
		Payload, PayloadType string
		Signatures           []struct{ Sig string }
	}
	if err := json.Unmarshal(read("receipt.dsse.json"), &envelope); err != nil {
		fail("receipt: %v", err)
	}
	body, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil || len(envelope.Signatures) != 1 {
		fail("the receipt is no envelope of one signature")
	}
	sig, err := base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)
	pae := fmt.Sprintf("DSSEv1 %d %s %d %s", len(envelope.PayloadType),
		envelope.PayloadType, len(body), body)
	if err != nil || !verifier.Verify([]byte(pae), sig) {
		fail("the receipt is not signed by %s", verifier.Name())
	}
	if err := json.Unmarshal(body, &r); err != nil {
		fail("receipt: %v", err)
	}
	return
}

func checkReceipt(verifier note.Verifier, digests map[string]string,
	stored store, n int64, last []byte) {
	r := openReceipt(verifier)
	parts := 0
	for _, subject := range r.Subject {
		want, ok := digests[subject.Name]
		if ok && subject.Digest["sha256"] != want {
			fail("the receipt is of another %s", subject.Name)
		}
		if ok {
			parts++
		}
	}
	root, err := tlog.TreeHash(n, stored)
	if err != nil || parts != len(digests) || r.Predicate.Log.Records != n ||
		r.Predicate.Log.Root != root.String() ||
		r.Predicate.Log.Last_checkpoint != string(last) ||
		!strings.HasSuffix(verifier.Name(), "/"+r.Predicate.Session) {
		fail("the receipt is of another log")
	}
}

func checkProof(file string, number string, verifier note.Verifier,
	lines [][]byte) {
	data, err := os.ReadFile(file)
	if err != nil {
		fail("%v", err)
	}
	index, err := strconv.ParseInt(number, 10, 64)
	head := fmt.Sprintf("c2sp.org/tlog-proof@v1\nindex %d\n", index)
	text := strings.TrimPrefix(string(data), head)
	at := strings.Index("\n"+text, "\n\n")
	if err != nil || text == string(data) || at < 0 {
		fail("%s is no proof of record %s", file, number)
	}
	var proof tlog.RecordProof
	for _, line := range strings.Fields(text[:at]) {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			fail("%s: %v", file, err)
		}
		proof = append(proof, hash)
	}
	tree := open([]byte(text[at+1:]), verifier)
	err = tlog.CheckRecord(proof, tree.N, tree.Hash, index,
		tlog.RecordHash(lines[index]))
	if err != nil {
		fail("%s: %v", file, err)
	}
}

func main() {
	dir = os.Args[1]
	verifier, err := note.NewVerifier(
		strings.TrimSuffix(string(read("session.vkey")), "\n"))
	if err != nil {
		fail("session.vkey: %v", err)
	}
	lines, digests := records()
	stored := grow(lines)
	count, last := checkpoints(verifier, stored, int64(len(lines)))
	checkReceipt(verifier, digests, stored, int64(len(lines)), last)
	if len(os.Args) > 3 {
		checkProof(os.Args[2], os.Args[3], verifier, lines)
	}
	fmt.Printf("outsider: %d records, %d checkpoints and the receipt fit\n",
		len(lines), count)
}
