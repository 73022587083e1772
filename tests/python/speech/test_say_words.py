"""`linnet say --print words`: English text in full."""

import json
import random

import pytest

from harness import linnet

# text | words: letters that are spelled are capital ones.
CASES = """
0 | zero
7 | seven
10 | ten
13 | thirteen
19 | nineteen
20 | twenty
21 | twenty one
40 | forty
99 | ninety nine
100 | one hundred
101 | one hundred one
110 | one hundred ten
342 | three hundred forty two
999 | nine hundred ninety nine
1000 | one thousand
1001 | one thousand one
1,234 | one thousand two hundred thirty four
12,000 | twelve thousand
100,000 | one hundred thousand
999,999 | nine hundred ninety nine thousand nine hundred ninety nine
1000000 | one million
1,234,567 | one million two hundred thirty four thousand five hundred sixty seven
2,000,000,000 | two billion
1,000,000,000,000 | one trillion
1234567890123456789 | one two three four five six seven eight nine zero one two three four five six seven eight nine
9,000,000,000,000,000,000 | nine zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero
123,000,000,000,000,000 | one hundred twenty three quadrillion
007 | zero zero seven
-1 | minus one
-273.15 | minus two hundred seventy three point one five
+3 | plus three
−5 | minus five
3.14 | three point one four
0.5 | zero point five
.5 | point five
10.05 | ten point zero five
100.0 | one hundred point zero
0.001 | zero point zero zero one
1,234.56 | one thousand two hundred thirty four point five six
1st | first
2nd | second
3rd | third
4th | fourth
5th | fifth
8th | eighth
9th | ninth
11th | eleventh
12th | twelfth
13th | thirteenth
20th | twentieth
21st | twenty first
32nd | thirty second
43rd | forty third
100th | one hundredth
101st | one hundred first
1,000th | one thousandth
1/2 | one half
1/3 | one third
2/3 | two thirds
1/4 | one quarter
3/4 | three quarters
5/8 | five eighths
7/16 | seven sixteenths
2 1/2 | two and a half
1 3/4 | one and three quarters
1 1/3 cups | one and a third cups
2 1/2 miles | two and a half miles
1/2 mile | one half mile
½ | one half
2½ | two and a half
24/7 | twenty four seven
$1 | one dollar
$5 | five dollars
$0 | zero dollars
$5.99 | five dollars and ninety nine cents
$0.99 | ninety nine cents
$0.01 | one cent
$1.01 | one dollar and one cent
$100 | one hundred dollars
$1,234.56 | one thousand two hundred thirty four dollars and fifty six cents
$1.5 | one point five dollars
$3M | three million dollars
$20k | twenty thousand dollars
$1.2 million | one point two million dollars
$5 billion | five billion dollars
-$5 | minus five dollars
£1 | one pound
£2.50 | two pounds and fifty pence
£3,499.50 | three thousand four hundred ninety nine pounds and fifty pence
€20 | twenty euros
€0.50 | fifty cents
20 € | twenty euros
¥500 | five hundred yen
₹100 | one hundred rupees
50¢ | fifty cents
10:30 | ten thirty
1:05 | one oh five
7:00 | seven o'clock
12:00 | twelve o'clock
12:15 a.m. | twelve fifteen A M.
5 p.m. | five P M.
5 p.m. Then | five P M. then
5pm | five P M
9:30 PM | nine thirty P M
14:30 | fourteen thirty
23:59 | twenty three fifty nine
0:15 | zero fifteen
14:00 | fourteen hundred
10:30:15 | ten thirty and fifteen seconds
10:30:01 | ten thirty and one second
9-5 | nine to five
9 a.m. to 5 p.m. | nine A M to five P M.
9:00–17:30 | nine o'clock to seventeen thirty
at 5 a.m., we | at five A M, we
Jan. 3 | january third
January 3rd | january third
Jan. 3, 2024 | january third, twenty twenty four
January 3rd, 1999. | january third, nineteen ninety nine.
Dec. 24, 1905 was | december twenty fourth, nineteen oh five was
May 5 | may fifth
may 5 people | may five people
in May 2024 | in may twenty twenty four
in May. | in may.
Sept. 11 | september eleventh
3 January | the third of january
3 January 2024 | the third of january twenty twenty four
the 4th of July | the fourth of july
25 Dec. 1999 | the twenty fifth of december nineteen ninety nine
2024-01-03 | january third, twenty twenty four
1999-12-31 | december thirty first, nineteen ninety nine
12/24/1999 | december twenty fourth, nineteen ninety nine
24/12/1999 | december twenty fourth, nineteen ninety nine
1/2/03 | january second, two thousand three
1/2/85 | january second, nineteen eighty five
13/13/2000 | thirteen over thirteen over two thousand
in 1905 | in nineteen oh five
in 1800 | in eighteen hundred
in 2000 | in two thousand
in 2005 | in two thousand five
in 2010 | in twenty ten
since 1100 | since eleven hundred
1066 | one thousand sixty six
1984 | nineteen eighty four
2024 was | twenty twenty four was
1500 people | one thousand five hundred people
1200 W | one thousand two hundred watts
300 BC | three hundred B C
1990s | nineteen nineties
the '90s | the nineties
80s | eighties
2000s | two thousands
1 kg | one kilogram
2 kg | two kilograms
2.5 kg | two point five kilograms
0.5 l | zero point five liters
1 m | one meter
100 m | one hundred meters
5 km | five kilometers
5km | five kilometers
3 ft | three feet
1 ft | one foot
6 mi | six miles
12 cm | twelve centimeters
3 mm | three millimeters
10 m² | ten square meters
5 m³ | five cubic meters
20 sq ft | twenty square feet
90 km/h | ninety kilometers per hour
60 mph | sixty miles per hour
3 m/s | three meters per second
20 °C | twenty degrees celsius
20°C | twenty degrees celsius
-5 °C | minus five degrees celsius
1 °C | one degree celsius
72°F | seventy two degrees fahrenheit
90° | ninety degrees
300 K | three hundred kelvin
12 V | twelve volts
1 V | one volt
230V | two hundred thirty volts
500 mA | five hundred milliamps
2 A | two amps
5000 mAh | five thousand milliamp hours
60 W | sixty watts
1 W | one watt
2.5 kW | two point five kilowatts
1 kWh | one kilowatt hour
350 kWh | three hundred fifty kilowatt hours
50 Hz | fifty hertz
2.4 GHz | two point four gigahertz
100 MB | one hundred megabytes
1 GB | one gigabyte
16 GB | sixteen gigabytes
4 TB | four terabytes
100 Mbps | one hundred megabits per second
1013 hPa | one thousand thirteen hectopascals
2.2 bar | two point two bars
30 psi | thirty pounds per square inch
3000 rpm | three thousand R P M
65 dB | sixty five decibels
500 lx | five hundred lux
400 ppm | four hundred parts per million
250 kcal | two hundred fifty kilocalories
60 fps | sixty frames per second
300 dpi | three hundred dots per inch
10 Ω | ten ohms
15 s | fifteen seconds
1 s | one second
20 ms | twenty milliseconds
5 min | five minutes
1 min. | one minute.
2 h | two hours
3 hrs | three hours
5 min. Then | five minutes. then
8 oz | eight ounces
3 lbs | three pounds
5 % | five percent
5% | five percent
100 % | one hundred percent
2.5% | two point five percent
1 % | one percent
5‰ | five per mille
5-10 | five to ten
5–10 | five to ten
5-10 % | five to ten percent
10 - 5 | ten to five
pages 3-7 | pages three to seven
1999-2001 | nineteen ninety nine to two thousand one
2019–2021 | twenty nineteen to twenty twenty one
5%-10% | five percent to ten percent
10-15 °C | ten to fifteen degrees celsius
5-year-old | five year old
COVID-19 | covid nineteen
A-1 | A one
2.0.1 | two point zero point one
v2 | version two
v2.1 | version two point one
v1.2.3 | version one point two point three
v. 3 | version three
192.168.0.1 | one nine two dot one six eight dot zero dot one
10.0.0.255 | one zero dot zero dot zero dot two five five
IPv4 | I P V four
555-0123 | five five five, zero one two three
555-123-4567 | five five five, one two three, four five six seven
1-800-555-1234 | one, eight zero zero, five five five, one two three four
3x4 | three by four
1920 x 1080 | one thousand nine hundred twenty by one thousand eighty
3 × 4 | three by four
#5 | number five
No. 5 | number five
no. Five | no. five
no | no
Nos. 5 and 6 | numbers five and six
Fig. 3 | figure three
p. 12 | page twelve
pp. 3-4 | pages three to four
Vol. 2 | volume two
Mr. Brown | mister brown
Mr Brown | mister brown
Mrs. Brown | missus brown
Ms. Lee | miz lee
Dr. Gray | doctor gray
Dr Gray | doctor gray
5 Elm Dr. | five elm drive.
St. John | saint john
Elm St. | elm street.
Main St. Then | main street. then
on Main St. today | on main street today
Prof. X | professor X
John Smith Jr. | john smith junior.
John Smith Jr. went | john smith junior went
Gen. Lee | general lee
Apple Inc. | apple incorporated.
Apple Inc. said | apple incorporated said
Smith & Co. | smith and company.
vs. them | versus them
us vs them | us versus them
e.g. this | for example this
i.e. that | that is that
apples, etc. | apples, et cetera.
apples, etc. We | apples, et cetera. we
apples, etc., and | apples, et cetera, and
approx. 5 | approximately five
Max. 5 A | maximum five amps
min. 3 V | minimum three volts
Mon. to Fri. | monday to friday.
Mon. | monday.
sat down | sat down
5th Ave. | fifth avenue.
Mt. Everest | mount everest
temp. low | temperature low
USB | U S B
the USB's | the U S B's
CPUs | C P U's
TVs | T V's
LEDs | L E D's
NASA | nasa
NATO | nato
HTML | H T M L
U.S. | U S.
the U.S. is | the U S is
U.S.A. | U S A.
U.K. and | U K and
Ph.D. | P H D.
PhD | P H D
J. Smith | J smith
J. R. R. Tolkien | J R R tolkien
A. Then | A then
plan B | plan B
I am | i am
a plan | a plan
ON | on
TURN OFF | turn off
WARNING: BATTERY LOW | warning: battery low
CALL THE FBI NOW | call the F B I now
FBI | F B I
iPhone | I phone
YouTube | you tube
McDonald | mcdonald
WiFi | wi fi
Wi-Fi | wi fi
OK | okay
ok | okay
GPS | G P S
B12 | B twelve
MP3 | M P three
3D | three D
4K | four K
5G | five G
A4 | A four
Q3 | Q three
R2D2 | R two D two
H2O | H two O
Henry VIII | henry the eighth
Louis XIV | louis the fourteenth
World War II | world war two
Chapter IV | chapter four
Part I | part one
Type X | type ten
Phase V | phase five
XIV | X I V
I | i
bob@example.com | bob at example dot com
www.example.com | W W W dot example dot com
https://example.com | example dot com
example.com/help | example dot com slash help
readme.txt | readme dot txt
end.Next | end. next
AT&T | A T and T
R&D | R and D
salt & pepper | salt and pepper
3 + 4 = 7 | three plus four equals seven
5 > 3 | five is greater than three
2 < 3 | two is less than three
~5 | about five
±2 | plus or minus two
and/or | and or
C++ | C plus plus
100 ° | one hundred degrees
it's | it's
don't | don't
the dogs' bones | the dogs bones
rock 'n' roll | rock n roll
"quoted" | quoted
“quoted” | quoted
(in brackets) | in brackets
[more] | more
a — b | a, b
a – b | a, b
a - b | a, b
well-known | well known
wait... what | wait. what
wait… what | wait. what
what?! | what?
no!! | no!
Hello , world . | hello, world.
café | cafe
naïve | naive
Ångström | angstrom
straße | strasse
Ørsted | orsted
smörgåsbord | smorgasbord
日本 ok | okay
""".strip().split("\n")


def words(tmp_path, texts):
    (tmp_path / "texts.json").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    done = linnet("say", "--print", "words", "--json", "--json-input", "-i", tmp_path / "texts.json")
    assert done.returncode == 0, done.stderr
    return [t["words"] for t in json.loads(done.stdout)["texts"]]


def test_words(tmp_path):
    cases = [case.split(" | ") for case in CASES]
    found = words(tmp_path, [text for text, _ in cases])
    wrong = [(text, expected, got) for (text, expected), got in zip(cases, found, strict=True) if expected != got]
    assert len(cases) > 350 and not wrong, wrong


def test_every_number_below_ten_thousand(tmp_path):
    """Against a way of its own; its ordinal, too."""
    ones = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
            "eighteen nineteen").split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()

    def name(n):
        if n < 20:
            return ones[n]
        if n < 100:
            return tens[n // 10 - 2] + (" " + ones[n % 10] if n % 10 else "")
        unit, word = (100, "hundred") if n < 1000 else (1000, "thousand")
        return f"{name(n // unit)} {word}" + (f" {name(n % unit)}" if n % unit else "")

    def ordinal(n):
        head, _, last = name(n).rpartition(" ")
        odd = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
               "twelve": "twelfth"}
        last = odd.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
        return f"{head} {last}".strip()

    numbers = range(0, 10000, 7)
    assert words(tmp_path, [f"+{n:,}" for n in numbers]) == [f"plus {name(n)}" for n in numbers]
    assert words(tmp_path, [f"{n:,}th" for n in numbers]) == [ordinal(n) for n in numbers]


def test_sentences_go_on(tmp_path):
    text = "Dr. Lee paid $3.50 at 5 p.m. on Jan. 3rd, 2024; it was -5 °C. \"Really?\" asked the CEO.\n\nYes, 12 km/h (or 7.5 mph)"
    assert words(tmp_path, [text]) == [
        "doctor lee paid three dollars and fifty cents at five P M on january third, twenty twenty four; it was minus five degrees "
        "celsius. really? asked the C E O. yes, twelve kilometers per hour, or seven point five miles per hour"]


@pytest.mark.parametrize("seed", range(4))
def test_any_text_becomes_words(tmp_path, seed):
    """Small letters, names of letters, marks; nothing else, whatever is put together."""
    rng = random.Random(seed)
    parts = [case.split(" | ")[0] for case in CASES] + list("0123456789.,:;-/–$£°% ½ '\"()#@&") + ["\n\n", "é", "日", "\U0001f600"]
    texts = ["".join(rng.choice(parts) + rng.choice(["", "", " "]) for _ in range(rng.randrange(1, 12))) for _ in range(2000)]
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ' .,:;?!")
    for text, found in zip(texts, words(tmp_path, [t if t.strip() else "a" for t in texts]), strict=True):
        assert set(found) <= allowed and "  " not in found and found == found.strip(), (text, found)
        assert all(len(w.rstrip(".,:;?!").removesuffix("'s")) == 1 for w in found.split() if any(c.isupper() for c in w)), (text, found)
