package memory

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// An order is one way in which a fact reads as an instruction to agents.
type order struct {
	about string // what the log says
	re    func() *regexp.Regexp
}

// Words of which the patterns are made.
const (
	agents  = `(?:ai[ -])?(?:ai|a\.i\.|llms?|agents?|assistants?|chat ?bots?|bots?|(?:language )?models?|sub-?agents?|claude|codex|copilot|gpt|gemini|sonny)`
	address = `(?:https?://|ftp://|www\.|[\w-]+\.(?:com|net|org|io|dev|sh|xyz|ru|cn)\b)`
	mail    = `[\w.+-]+@[\w-]+\.\w+`
	person  = `(?:the |your |any |a )?(?:users?|persons?|people|humans?|owners?|operators?|developers?|maintainers?|admins?|anyone|anybody|them|him|her)`
	safety  = `(?:approvals?|approval gates?|sandbox(?:es|ing)?|confinement|permissions?|permission checks?|safety checks?|guard ?rails?|allow-?lists?|(?:command|approval|security|safety|agent|sandbox) rules?|config\.toml|project\.toml|agents\.md|(?:api|provider|access|secret|ssh|private|signing) keys?|api tokens?|access tokens?|credentials?|secrets?|passwords?|~/\.agents?\b|\.ssh\b)`
	loosen  = `(?:approve|auto-?approve|allow|grant|give|disable|enable|turn off|turn on|switch off|skip|bypass|circumvent|evade|loosen|relax|weaken|override|overrule|ignore|disregard|change|edit|modify|rewrite|replace|delete|remove|lift|raise|escape|leave|use|read|print|show|reveal|dump|add|export|copy|rotate)`
	begin   = `(?:^|[.!?:;]\s+|\b(?:please|then|first|next|now|always|immediately|just|must|should|shall|need to|have to|has to|be sure to|make sure to|remember to|and)\s+)`
	command = "(?:`[^`]+`|\\$\\(|\\bsudo\\b|\\bcurl\\b|\\bwget\\b|\\bbash\\b|\\bsh -c\\b|\\bnp[mx]\\b|\\bpip3?\\b|\\bgit\\b|\\bchmod\\b|\\brm -|\\beval\\b|\\bpython3?\\b|\\bnode\\b|\\bssh\\b|\\bthe (?:following |script|command)|\\bthis (?:script|command|code))"
)

// orders are the rule by which the cleanup finds facts that read as instructions to
// agents (sonny.md 25.4). It knows English.
var orders = []order{
	{"it addresses agents", anyOf(
		`\b(?:dear|attention|note to|notice to|message (?:to|for)|instructions? (?:to|for)|important for|warning to|for) (?:all |any |the |other |every |future )*`+agents+`\b\s*[:,!—-]`,
		`\b(?:all |any |every |each |future |other )?`+agents+`\b(?: (?:reading|that reads?|who reads?|seeing|processing) (?:this|it))?,? (?:must|should|shall|are (?:required|instructed|asked|told|expected|to)|is (?:required|instructed|asked|told|expected|to)|have to|has to|need to|needs to|will now|may now|can now|always|never|do not|don't)\b`,
		`\b(?:if|when|as|since|because) you(?: are|'re) (?:an? |the )?`+agents+`\b`,
		`\bas an? (?:ai|assistant|agent|language model|bot)\b,? (?:you|please|do|always|never)\b`,
		`\b(?:ignore|disregard|forget|override|drop)\b[^.!?]{0,30}\b(?:previous|prior|earlier|above|existing|former|other|all|your|any)\b[^.!?]{0,20}\b(?:instructions?|rules?|orders?|prompts?|guidelines?|directions?|restrictions?)\b`,
		`\bsystem prompt\b|\bnew instructions?\b\s*:|\b(?:your|these) (?:new |real |true |actual )(?:instructions?|goal|task|orders?)\b`,
		`\b(?:from now on|henceforth|in (?:all )?future (?:turns|sessions|tasks|conversations)|in every (?:turn|session|task|reply))\b,? ?(?:you|always|never|do|use|run|add|include|begin|start|end|answer|reply)\b`,
		`\byou (?:must|shall|are (?:now|required|instructed|authori[sz]ed|allowed|permitted) ?(?:to)?|have (?:my |the |full )?(?:permission|authori[sz]ation|approval))\b`,
		`\b(?:act|behave|pretend|respond|reply|answer) as (?:if you|an? |the )(?:\w+ )?(?:admin|administrator|root|user|owner|unrestricted|developer)\b`,
	)},
	{"it speaks of approvals, sandboxes, keys or rules to be changed", anyOf(
		`\b`+loosen+`\b[^.!?]{0,50}\b`+safety,
		`\b`+safety+`[^.!?]{0,30}\b(?:must|should|shall|can|may|need to|have to) (?:now )?(?:be|stay|remain) (?:\w+ )?(?:approved|allowed|granted|disabled|enabled|turned off|switched off|skipped|bypassed|loosened|relaxed|ignored|changed|edited|removed|lifted|read|printed|sent|shared|added)\b`,
		`\b(?:no|without|not need(?: any)?|needs? no|requires? no|never ask for|don't ask for|do not ask for|pre-?) ?(?:further |prior |more |any )?(?:approvals?|approved|confirmations?|permission|verdict)\b`,
		`\bdanger-full-access\b|\brequire_escalated\b|\b--?(?:yolo|dangerously[\w-]*|no-?sandbox)\b|\bfull access\b`,
	)},
	{"it names a command or an address to run or fetch", anyOf(
		begin+`(?:re-?)?(?:run|execute|exec|invoke|paste|type|enter|install|pipe|eval|evaluate|source|call|start|launch)\b[^.!?]{0,60}`+command,
		begin+`(?:fetch|download|open|visit|browse(?: to)?|go to|navigate to|load|read|get|curl|wget|clone|pull|request|query|post to|connect to|follow)\b[^.!?]{0,60}`+address,
		`\b(?:curl|wget)\b[^|]{0,200}\|\s*(?:sudo )?(?:ba|z|da|k)?sh\b`,
		`\b(?:base64 (?:-d|--decode)|eval)\b[^|]{0,80}\|\s*(?:ba|z)?sh\b`,
	)},
	{"it asks to pass something on, or to hide it", anyOf(
		`\b(?:send|post|upload|forward|e-?mail|mail|share|pass|copy|exfiltrate|report|leak|submit|publish|relay|transmit|push|deliver|write)\b[^.!?]{0,70}\b(?:to|on to|onto|at|via|with)\b[^.!?]{0,30}(?:`+address+`|`+mail+`|\b(?:other|every|all|each|another) `+agents+`\b|\bwebhooks?\b)`,
		`\b(?:pass|spread|copy|save|repeat|write|include|forward|insert|add) (?:this|these|it|that)\b(?: \w+){0,3} (?:on to|onto|to|into|in) (?:every|all|each|any|other|your|the other)\b`,
		`\b(?:do not|don't|never|without|avoid|must not|should not|shall not)\b (?:ever )?(?:tell|telling|inform|informing|notify|notifying|ask|asking|alert|alerting|warn|warning|consult|consulting|show|showing)\b (?:this (?:to )?|it to )?`+person+`\b`,
		`\b(?:do not|don't|never|without|avoid|must not|should not)\b (?:ever )?(?:mention|mentioning|reveal|revealing|disclose|disclosing|report|reporting|log|logging|show|showing|quote|quoting|repeat|repeating) (?:this|that|these|it|the above|having)\b`,
		`\bkeep (?:this|that|these|it)\b[^.!?]{0,20}\b(?:secret|hidden|quiet|private|confidential|to yourself)\b|\b(?:hide|conceal) (?:this|that|these|it|your)\b|\b(?:secretly|covertly|quietly|silently|discreetly) (?:run|send|fetch|add|change|do|remove|upload|post|install|copy|approve)\b`,
	)},
}

// anyOf is a pattern that any of the alternatives makes. It is compiled when it is first
// used, since that takes a while and most programs never look.
func anyOf(alternatives ...string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:` + strings.Join(alternatives, `)|(?:`) + `)`)
	})
}

// ordersIn says in what way a fact reads as an instruction to agents; "" for a fact
// that does not.
func ordersIn(f *Fact) string {
	for _, text := range []string{f.Description, f.Text} {
		text = evened(text)
		for _, o := range orders {
			if o.re().MatchString(text) {
				return o.about
			}
		}
	}
	return ""
}

// evened is a text as the patterns take it: small letters, those of other scripts that
// look like Latin ones as these, without invisible characters, marks on letters and
// Markdown's emphasis, letters that stand apart and lines that were only wrapped joined,
// and each item of a list a sentence of its own.
func evened(text string) string {
	text = strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		switch {
		case unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me), r == '*', r == '>', r == 'ㅤ', r == 'ᅠ':
			return -1
		case r == '’' || r == '‘':
			return '\''
		case looks[r] != 0:
			return looks[r]
		}
		return r
	}, norm.NFKD.String(text))
	text = apart.ReplaceAllStringFunc(text, func(letters string) string { return strings.Join(strings.Fields(letters), "") })
	text = item.ReplaceAllString(text, ". ")
	return strings.TrimSpace(spaces.ReplaceAllString(text, " "))
}

// looks are small letters of Greek and Cyrillic, and a few others, that read as a Latin
// one.
var looks = lookalikes(
	"аɑα", 'a', "ьЬ", 'b', "сϲ", 'c', "ԁ", 'd', "еєε", 'e', "ɡ", 'g', "һ", 'h', "іιı", 'i', "јϳ", 'j', "кκ", 'k', "ӏⅼ", 'l',
	"м", 'm', "пո", 'n', "оοσօ", 'o', "рρ", 'p', "ԛ", 'q', "гг", 'r', "ѕ", 's', "тτ", 't', "υս", 'u', "ѵν", 'v', "ԝω", 'w', "хχ", 'x', "уγ", 'y', "ᴢ", 'z',
)

func lookalikes(pairs ...any) map[rune]rune {
	m := map[rune]rune{}
	for i := 0; i < len(pairs); i += 2 {
		for _, r := range pairs[i].(string) {
			m[r] = pairs[i+1].(rune)
		}
	}
	return m
}

var (
	apart  = regexp.MustCompile(`\b(?:\pL ){3,}\pL\b`)
	item   = regexp.MustCompile(`\n\s*(?:[-+•#]+|\d+[.)])\s+|\n\s*\n\s*`)
	spaces = regexp.MustCompile(`\s+`)
)
