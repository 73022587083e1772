"""A few hundred English sentences with what makes clauses hard to find: abbreviations, numbers, quotes, brackets, dashes."""

HARD = """Hello, world. How are you? Fine!
Mr. Smith went to 5 Elm St. yesterday.
At 5 a.m., we left.
He said: "Go." Then left...
He said "Go!" then left.
Wait – no - yes — maybe… OK.
Wait—no.
A (b) c [d] e/f (stop.) and so on.
E.g. 5 ft. Then 6 ft.
It's 3.5 kg; OK: 10:30.
Hello.World
The U.S.A. is big. OK
Hi , there .
The end of 'quote.' And another.
1. First 2. Second
Hm...well... OK ... yes
(See fig. 3).  Next
a;b
3,000 and 4,5
So-called "x", y.
Go.) Now
Go.” Now
It's 5. 6 is more.
It's 5. six is more.
No. 5 is alive.
Wait...
He said. "yes"
Dash -- dash.
A.B. Smith went home.
50%, OK.
a . b
a . B
5 p.m. Then
5 p.m. then
. Start
a, , b
Etc., we said.
OK!, we said.
OK?, we said.
x: - y
Ph.D., Smith
Dr. Jones Jr. and Mrs. Brown, of Main St., met at 3:15 p.m. on Dec. 24, 1999.
“I don't know,” she said, “but it's $5.99!”
The U.S. economy grew by 2.5% in Q3 (vs. 1.9%).
Well-known; not so. Yes: it is!
He’s here — isn’t he?
A, B, and C; D: E. F? G! H
The "end".
The 'end.'
("Really?" she asked.)
Prof. X vs. Dr. Y, i.e. them.
But, of course, we can't.
And? So what!
To be, or not to be: that is the question.
The sign says: "No entry." Why?
Version 2.0.1 is out; version 3.0 isn't.
Call 555-0123 (ask for Ms. Lee), or write.
It was -5 °C. Then it was +3.
He paid £3,499.50 – or was it €3,500?
Open 9 a.m. to 5 p.m., Mon. to Fri.
"Stop!" "Why?" "Because."
Yes, no, maybe, I don't know. Can you repeat the question?""".split("\n")

NAMES = ["Mr. Brown", "Dr. Gray", "Mrs. O'Neil", "St. John", "the U.S. envoy", "Prof. Lee", "Anne-Marie", "J. R. Smith"]
VERBS = ["paid $12.50 for it", "left at 7:45 a.m. sharp", "said, \"not now\"", "walked 3.2 miles", "asked: why not", "waited (in vain)",
         "was No. 1", "answered 'yes'", "found it – at last", "arrived on Jan. 3rd, 2024"]
ENDS = [".", "!", "?", "; nobody knew.", ", but it rained.", ": nothing else.", "...", " – perhaps."]


def sentences():
    mixed = [f"{name} {verb}{end}" for i, name in enumerate(NAMES) for j, verb in enumerate(VERBS)
             for k, end in enumerate(ENDS) if (i + j + k) % 2 == 0]
    return HARD + mixed
