package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTrust(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, folder, link := filepath.Join(dir, "trust.json"), filepath.Join(dir, "folder"), filepath.Join(dir, "link")
	setup := filepath.Join(folder, ".agents", "setup")
	if err := os.MkdirAll(filepath.Dir(setup), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("folder", link); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(setup, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(folder string) *Answer {
		t.Helper()
		a, notice, err := TrustOf(path, folder)
		if notice != nil || err != nil {
			t.Fatal(notice, err)
		}
		return a
	}
	trust := func(folder string, use bool) {
		t.Helper()
		if notice, err := Trust(path, folder, use); notice != nil || err != nil {
			t.Fatal(notice, err)
		}
	}

	if answer(folder) != nil {
		t.Error("an answer before there was a question")
	}
	trust(link, false)
	if a := answer(folder); a == nil || a.Use || a.Setup != "" || a.SetupChanged() {
		t.Errorf("%+v: an answer is the real path's, whatever it was asked for", a)
	}
	write("make\n")
	if !answer(folder).SetupChanged() {
		t.Error("a setup came, and nothing changed")
	}
	trust(folder, true)
	if a := answer(link); !a.Use || a.SetupChanged() {
		t.Errorf("%+v", a)
	}
	write("make x\n")
	if !answer(folder).SetupChanged() {
		t.Error("another setup is the same")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if answer(dir) != nil {
		t.Error("an answer for the folder above")
	}
	if err := os.Remove(setup); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", setup); err != nil {
		t.Fatal(err)
	}
	if !answer(folder).SetupChanged() {
		t.Error("a setup that is a link is as it was")
	}
	if _, err := Trust(path, folder, true); err == nil {
		t.Error("a setup that is a link was answered for")
	}
	trust(folder, false)
	if a := answer(folder); a.Use {
		t.Errorf("%+v", a)
	}
}

func TestTheOldestAnswersAreForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "trust.json")
	var kept trustFile
	if _, err := changeKept(path, &kept, func(bool) error {
		for i := range maxAnswers {
			kept.Folders = append(kept.Folders, Answer{Folder: fmt.Sprintf("/%d", i)})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := Trust(path, dir, true); err != nil {
		t.Fatal(err)
	}
	var now trustFile
	if _, err := readKept(path, &now); err != nil {
		t.Fatal(err)
	}
	if len(now.Folders) != maxAnswers || now.Folders[0].Folder != "/1" || !now.Folders[maxAnswers-1].Use {
		t.Errorf("%d, %v, %v", len(now.Folders), now.Folders[0], now.Folders[len(now.Folders)-1])
	}
}

func TestADamagedFileIsBegunAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"cut": `{"model":"a/b","notices":["x"`, "other": `{"model":"a/b","notices":5,"folders":7}`, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, notice, err := LoadState(path)
			if err != nil || notice == nil || !strings.Contains(notice.Text, path+" is damaged") || s.Model != "" {
				t.Errorf("%+v, %v, %v", s, notice, err)
			}
			if a, notice, err := TrustOf(path, dir); a != nil || notice == nil || err != nil {
				t.Error(a, notice, err)
			}
			if without, err := OpenedWithout(path, dir); !without || err == nil || !strings.Contains(err.Error(), path+" is damaged") {
				t.Errorf("a lost answer counts as yes: %v, %v", without, err)
			}
			notice, err = ChangeState(path, func(s *State) { s.Effort = "low" })
			if notice == nil || err != nil {
				t.Error(notice, err)
			}
			s, notice, err = LoadState(path)
			if s.Effort != "low" || s.Model != "" || notice != nil || err != nil {
				t.Errorf("%+v, %v, %v", s, notice, err)
			}
		})
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("cut", link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := LoadState(link); err == nil || !strings.Contains(err.Error(), link+" is a link") {
		t.Error(err)
	}
	if _, err := ChangeState(link, func(*State) {}); err == nil {
		t.Error("a link was replaced")
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	if s, notice, err := LoadState(path); s.Model != "" || notice != nil || err != nil {
		t.Error(s, notice, err)
	}
	for i, want := range []bool{false, true, true} {
		if _, err := ChangeState(path, func(s *State) {
			s.Model = "a/b"
			if s.Said("renamed web") != want {
				t.Errorf("the %d. time: %v", i+1, !want)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	s, _, err := LoadState(path)
	if err != nil || s.Model != "a/b" || !slices.Equal(s.Notices, []string{"renamed web"}) {
		t.Errorf("%+v, %v", s, err)
	}
	for i := range maxNotices {
		s.Said(fmt.Sprint(i))
	}
	if len(s.Notices) != maxNotices || s.Said("renamed web") {
		t.Errorf("%d notices are kept", len(s.Notices))
	}
}

func TestSonnysFolderIsMade(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	path, err := InSonny("state.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ChangeState(path, func(s *State) { s.SetUp = true }); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".agent", ".agent/sonny"} {
		if info, err := os.Stat(filepath.Join(home, dir)); err != nil || info.Mode().Perm() != 0o700 {
			t.Error(dir, info, err)
		}
	}
	if err := Set(filepath.Join(home, ".agent", "config.toml"), "judge_note", "~/note", nil); err != nil {
		t.Fatal(err)
	}
	if c, _, err := Load(filepath.Join(home, ".agent", "config.toml")); err != nil || c.JudgeNote != filepath.Join(home, "note") {
		t.Error(c.JudgeNote, err)
	}
}
