"""A text as it is kept: no hidden characters, no secrets, and honest flags if it gives orders."""

from __future__ import annotations

import base64
import random
import re
import string
import subprocess
import sys
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from memory.text.guard import clean, injection_flags
from memory.text.secrets.redact import redact, secrets_in
from tests.kit.tables import each_row

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
MARK = re.compile(r"\[secret: [a-z ]{3,30}\]")


def some(count: int, alphabet: str = ALNUM, *, seed: int = 7) -> str:
    """Characters that look random and are the same in every run; the first is a letter or digit, the last a digit."""
    source = random.Random(f"{seed}{count}{alphabet}")
    return (
        source.choice(ALNUM if alphabet == URLSAFE else alphabet)
        + "".join(source.choice(alphabet) for _ in range(count - 2))
        + ("7" if "7" in alphabet else alphabet[-1])
    )


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


# Every secret is put together here, so that no scanner finds one in the repository.
JWT = ".".join((encoded('{"alg":"HS256"}'), encoded('{"sub":"1234567890"}'), some(43, URLSAFE)))
PEM = "\n".join(
    (
        "-----BEGIN RSA PRIVATE" + " KEY-----",
        *(some(64, seed=line) for line in range(6)),
        "-----END RSA PRIVATE" + " KEY-----",
    )
)
TELEGRAM = some(10, "123456789") + ":AA" + some(33, URLSAFE)
DISCORD = "MT" + some(24) + "." + some(6, URLSAFE) + "." + some(38, URLSAFE)
SEED_PHRASE = "abandon ability able about above absent absorb abstract absurd abuse access accident"

#: (label, text before the secret, the secret, text after it)
FORMATS = [
    ("telegram token", "", TELEGRAM, ""),
    ("telegram token", "https://api.telegram.org/bot", TELEGRAM, "/getUpdates"),
    ("telegram token", "bot", TELEGRAM.replace(":", "%3A"), ""),
    ("discord token", "", DISCORD, ""),
    ("webhook token", "https://discord.com/api/webhooks/123456789012345678/", some(68, URLSAFE), ""),
    ("discord interaction token", "", encoded("interaction:" + some(60)), ""),
    ("openai key", "", "sk-" + some(20) + "T3Blbk" + "FJ" + some(20), ""),
    ("openai key", "", "sk-" + "proj-" + some(120, URLSAFE), ""),
    ("anthropic key", "", "sk-" + "ant-api03-" + some(93, URLSAFE) + "AA", ""),
    ("openrouter key", "", "sk-" + "or-v1-" + some(64, HEX), ""),
    ("google key", "https://maps.example/js?key=", "AI" + "za" + some(35, URLSAFE), "&v=3"),
    ("github token", "", "gh" + "p_" + some(36), ""),
    ("github token", "", "gh" + "s_" + some(36), ""),
    ("github token", "", "github" + "_pat_" + some(22) + "_" + some(59), ""),
    ("gitlab token", "", "gl" + "pat-" + some(20, URLSAFE), ""),
    ("slack token", "", "xo" + "xb-" + some(12, "123456789") + "-" + some(24), ""),
    ("slack token", "", "xa" + "pp-1-A" + some(10) + "-" + some(64, HEX), ""),
    ("webhook token", "https://hooks.slack.com/services/", f"T{some(9)}/B{some(9)}/{some(24)}", ""),
    ("aws key", "", "AK" + "IA" + some(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), ""),
    ("access key", "aws_secret_access_key = ", some(40), ""),
    ("azure key", "", base64.b64encode(bytes(range(64))).decode(), ""),
    ("stripe key", "", "sk_" + "live_" + some(24), ""),
    ("stripe key", "", "rk_" + "live_" + some(99), ""),
    ("webhook secret", "", "wh" + "sec_" + some(32), ""),
    ("hugging face token", "", "hf" + "_" + some(34), ""),
    ("npm token", "//registry.npmjs.org/:_authToken=", "np" + "m_" + some(36), ""),
    ("pypi token", "", "py" + "pi-AgEIcHlwaS5vcmc" + some(120, URLSAFE), ""),
    ("sendgrid key", "", "S" + "G." + some(22, URLSAFE) + "." + some(43, URLSAFE), ""),
    ("twilio key", "", "S" + "K" + some(32, HEX), ""),
    ("mailchimp key", "", some(32, HEX) + "-us" + "12", ""),
    ("square secret", "", "sq0" + "csp-" + some(43, URLSAFE), ""),
    ("groq key", "", "gs" + "k_" + some(52), ""),
    ("vault token", "", "hv" + "s." + some(90, URLSAFE), ""),
    ("tencent key", "", "AK" + "ID" + some(32), ""),
    ("json web token", "", JWT, ""), ("private key", "", PEM, ""),
    ("private key", '{"key": "', PEM.replace("\n", "\\n"), '"}'),
    ("authorization", "Authorization: Bearer ", some(40), ""),
    ("authorization", '"authorization": "Basic ', encoded("joe:" + some(14)), '"'),
    ("bearer token", "curl -H 'X: bearer ", some(40), "'"),
    ("url password", "postgres://joe:", some(12), "@db.local:5432/x"),
    ("url password", "redis://:", "p@" + some(9), "@cache/0"),
    ("api key", "OPENAI_API_KEY=", some(32), ""),
    ("secret", '"client_secret": "', some(32), '"'),
    ("token", "https://x.example/cb?access_token=", some(24), "&user=bob"),
    ("password", "my password is ", "Tr0ub4dor&3", ""),
    ("password", "the wifi password is ", "swordfish", ". Don't tell"),
    ("password", "Password: ", "hunter2", ", user: bob"),
    ("password", "DB_PASSWORD=", "swordfish", ""),
    ("password", '{"password": "', "with blanks inside", '"}'),
    ("password", "password for the guest wifi is ", "Blue42Horse", ""),
    ("password", "我的密码是", "abc123#9", "，别告诉别人"), ("password", "密码：", "swordfish", " 登录"),
    ("password", "wifi密码", "abc12345", ""), ("password", "пароль: ", "кошка77", ""), ("pin", "my pin is ", "4821", ""),
    ("pin", "PIN码是", "4821", ""),
    ("passphrase", "passphrase: ", "correct horse battery staple", ""),
    ("seed phrase", "Seed phrase: ", SEED_PHRASE, ""),
    ("card number", "pay with ", "4111 1111 1111 1111", " exp 12/27"),
    ("card number", "", "378282246310005", ""),
    ("card number", "card ", "5555-5555-5555-4444", ""),
    ("bank account", "my IBAN is ", "DE89 3704 0044 0532 0130 00", ""),
    ("openai key", "", "sk-" + "svcacct-" + some(80, URLSAFE), ""),
    ("aws key", "", "AS" + "IA" + some(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), ""),
    ("aws signature", "https://b.example/f?X-Amz-Signature=", some(64, HEX), "&x=1"),
    ("google token", "", "ya" + "29." + some(60, URLSAFE), ""),
    ("google token", "refresh: ", "1/" + "/0" + some(50, URLSAFE), ""),
    ("google client secret", "", "GOC" + "SPX-" + some(28, URLSAFE), ""),
    ("private key", '{"type": "service_account", "private_key": "', PEM.replace("RSA ", "").replace("\n", "\\n"), '"}'),
    ("azure signature", "https://x.blob.example/c?sv=2024-01-01&sp=r&sig=", some(43) + "%3D", "&se=2027"),
    ("azure secret", "", some(3) + "8" + "Q~" + some(34), ""),
    ("gitlab token", "", "gl" + "rt-" + some(20, URLSAFE), ""),
    ("slack token", "", "xo" + "xp-" + some(12, "123456789") + "-" + some(12, "123456789") + "-" + some(32, HEX), ""),
    ("stripe key", "", "rk_" + "test_" + some(24), ""),
    ("twilio key", "TWILIO_SID=", "A" + "C" + some(32, HEX), ""),
    ("mailgun key", "", "key" + "-" + some(32, HEX), ""),
    ("docker token", "", "dckr" + "_pat_" + some(27, URLSAFE), ""),
    ("rubygems key", "", "rubygems" + "_" + some(48, HEX), ""),
    ("cloudflare key", "", "v1.0" + "-" + some(24, HEX) + "-" + some(146, HEX), ""),
    ("api key", "CLOUDFLARE_API_TOKEN=", some(40, URLSAFE), ""),
    ("heroku key", "", "HRKU" + "-" + some(36, HEX), ""),
    ("api key", "HEROKU_API_KEY=", "-".join(some(n, HEX) for n in (8, 4, 4, 4, 12)), ""),
    ("digitalocean token", "", "dop" + "_v1_" + some(64, HEX), ""),
    ("notion token", "", "nt" + "n_" + some(46), ""),
    ("notion token", "", "sec" + "ret_" + some(43), ""),
    ("linear key", "", "lin" + "_api_" + some(40), ""),
    ("shopify token", "", "shp" + "at_" + some(32, HEX), ""),
    ("square token", "", "EA" + "AA" + some(60, URLSAFE), ""),
    ("square token", "", "sq0" + "atp-" + some(22, URLSAFE), ""),
    ("airtable token", "", "pa" + "t" + some(14) + "." + some(64, HEX), ""),
    ("fly token", "", "fm" + "2_" + some(80), ""),
    ("grafana token", "", "gl" + "sa_" + some(32) + "_" + some(8, HEX), ""),
    ("sentry token", "", "snt" + "rys_" + some(80), ""),
    ("supabase token", "", "sb" + "p_" + some(40, HEX), ""),
    ("terraform token", "", some(14) + ".atlas" + "v1." + some(67, URLSAFE), ""),
    ("firebase key", "", "APA" + "91b" + some(134, URLSAFE), ""),
    ("age key", "", "AGE-SECRET" + "-KEY-1" + some(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"), ""),
    ("databricks token", "", "dap" + "i" + some(32, HEX), ""),
    ("tailscale key", "", "tsk" + "ey-auth-" + some(30), ""),
    ("postman key", "", "PM" + "AK-" + some(24, HEX) + "-" + some(34, HEX), ""),
    ("private key", "", PEM.replace("RSA", "OPENSSH"), ""),
    ("private key", "", PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"), ""),
    ("url password", "https://joe:", some(12), "@git.example/repo.git"),
    ("url password", "mongodb+srv://joe:", some(16), "@cluster0.example/db?retryWrites=true"),
    ("private key", "PrivateKey = ", some(43) + "=", ""),
    ("password", "user: bob pass: ", "hunter22", ""),
    ("password", "jdbc:sqlserver://db;user=sa;password=", "Str0ng!Pass", ";"),
    ("password", "mein Passwort ist ", "Blume2024", "."),
    ("password", "das Kennwort lautet ", "Blume2024", ""),
    ("password", "mi contraseña es ", "girasol88", ""),
    ("password", "la clave es: ", "girasol88", ""),
    ("password", "mon mot de passe est ", "tournesol9", "."),
    ("password", "мой пароль — ", "Qwerty12", ""), ("password", "Пароль это ", "Qwerty12", ""),
    ("password", "パスワードは", "himawari7", "です"), ("pin", "暗証番号は", "4821", "です"),
    ("password", "비밀번호는 ", "haebaragi7", "입니다"), ("password", "비번: ", "haebaragi7", ""),
    ("password", "口令：", "swordfish", ""), ("api key", "密钥是", some(20), ""),
]  # fmt: skip


@each_row(("label", "before", "secret", "after"), FORMATS)
def test_a_secret_is_masked_and_nothing_around_it_changes(label: str, before: str, secret: str, after: str) -> None:
    """People paste keys in the middle of a sentence; the sentence is what shall be remembered."""
    text = f"see: {before}{secret}{after}"
    assert redact(text) == f"see: {before}[secret: {label}]{after}"


def test_the_secrets_of_a_text_are_named_by_their_values_in_order_each_once() -> None:
    text = "wifi password: swordfish, pin: 4821; again: password: swordfish"
    assert secrets_in(text) == ["swordfish", "4821"]
    assert secrets_in("nothing here") == []


@each_row(
    "text",
    [
        "I forgot my password again", "My password is too long to remember", "the password is wrong, try again",
        "Your password is incorrect.", "The password is *really* important", "Password must be at least 8 characters",
        "Passwords: never reuse them.", "what is the wifi password?", "I reset my password 3 times today",
        "the password manager is 1Password", "password: required", "password: str = Field(...)",
        "password=${DB_PASSWORD}", "password: ********", 'api_key = os.environ["OPENAI_API_KEY2"]',
        "api_key=settings.api_key", "max_tokens: 4096", "The token is expired since 2024",
        "My secret is that I can't swim", "secret santa 2024 was fun", "密码是什么？", "我忘记密码了，密码错误3次", "密码是我的生日",
        "Pin this message, my pinterest: 12345", "Authorization: required for all", "the bearer of bad news",
        "task-force-on-climate-change-and-migration", "sk-estimator-for-language-and-vision",
        "https://example.com:8080/path@2x.png", "call me at +49 170 1234567 or 4111 222 333",
        "order 4111 1111 1111 1112", "<@434567890123456789> said 1712345678901", "2024-01-15 12:30:45",
        "123e4567-e89b-12d3-a456-426614174000", "commit 5f4dcc3b5aa765d61d8327deb882cf99",
        "write to bob.smith99@example.com", "la clave es la paciencia", "Pass: 3 of 4 tests",
        "the password - obviously - is long", "пароль - это секрет",
        "key-value-stores-and-other-databases-of-the-world", "パスワードを忘れました", "비밀번호를 잊어버렸어요",
        "token_type=bearer, token count: 1234", "patternmatchingabc.com is a site", "password = getpass()",
        "mein Passwort ist abgelaufen", "la contraseña es incorrecta", "hasło jest nieprawidłowe",
        "het wachtwoord is verlopen", "pin code: 560001", "boarding pass: LH4567", "the wifi name is FritzBox7590",
        "Set a password with 12+ characters", "password1 is a terrible password",
        "select sum(input_tokens) as input_tokens from usage", "tokenize = 'unicode61'", "error code: 5031",
        "zip code: 10115", "your discount code: SAVE20", "locker 300 is blue", "docker run -p 8080:80 nginx",
        "tx 0x" + some(64, HEX), "密码长度至少8位", "비밀번호가 틀렸습니다", "remember that my boat is called Halcyon",
        "my cat's name is Sesam", "my favourite code editor is vim", "the key to the shed is under the mat",
        "Username\nPassword\nSign in",
        "| Feature | Free |\n|---|---|\n| Password sharing | no |",
        "enter the building at 0900", "confirm 20 guests for the house party",
        "STRIPE_KEY=sk_" + "live_xxxxxxxxxxxxxxxxxxxxxxxx", "das Passwort ist leider wieder falsch",
        "het wachtwoord is gewijzigd", "la password è sempre la stessa", "пароль от Netflix",
        "hasło do wifi jest za krótkie", "I changed my password to something longer", "code erreur 4031",
        "kod pocztowy 30059", "kód chyby 4031", "password: !vault |", 'api_key: "REPLACE_WITH_YOUR_KEY_1"',
        "the twilio build 155677d794a27527f9fded49bc7e0f64",
        "words of the week: brisk, harbour, velvet, lantern, crumb, orchard, thimble, gravel, meadow, puddle, anchor, walnut",
        "turn right, then 2 left and right again",
    ],
)  # fmt: skip
def test_ordinary_talk_stays_as_it_is(text: str) -> None:
    """A mask in the wrong place destroys what was worth remembering."""
    assert redact(text) == text


#: Secrets as people write them in other languages, shapes and places: the text, and the secret in it.
TOLD = [
    ("Het wachtwoord van de wifi is Tulp&Klomp7", "Tulp&Klomp7"),
    ("hasło do routera: pieseczek", "pieseczek"),
    ("şifrem Kedi1923", "Kedi1923"),
    ("mitt lösenord är Snö-Boll9", "Snö-Boll9"),
    ("mật khẩu wifi là phobo2021", "phobo2021"),
    ("كلمة السر هي Nakhla77", "Nakhla77"),
    ("मेरा पासवर्ड Chai#2020 है", "Chai#2020"),
    ("moje heslo je Knedlik12", "Knedlik12"),
    ("salasanani on Pulla_2020", "Pulla_2020"),
    ("la password del wifi è Vesuvio79", "Vesuvio79"),
    ("la clave del wifi es Girasol88", "Girasol88"),
    ("mdp : chaussette", "chaussette"),
    ("รหัสผ่านคือ khaosoi41", "khaosoi41"),
    ("הסיסמה שלי היא Bamba770", "Bamba770"),
    ("κωδικός: feta2041", "feta2041"),
    ("lozinka je burek_41", "burek_41"),
    ("password\nrosebud_1941", "rosebud_1941"),
    ("Password\trosebud", "rosebud"),
    ("<td>Password</td><td>rosebud41</td>", "rosebud41"),
    ("<password>rosebud</password>", "rosebud"),
    ('<add key="password" value="rosebud"/>', "rosebud"),
    ("- name: DB_PASSWORD\n  value: rosebud", "rosebud"),
    ("**Password:** `rosebud`", "rosebud"),
    ("password 👉 rosebud", "rosebud"),
    ("my password is “rosebud and snow”", "rosebud and snow"),
    ("Rosebud41 is the wifi password", "Rosebud41"),
    ("log in with rosebud_41 as password", "rosebud_41"),
    ("my password was Rosebud41 and the new one is Snow-Globe42", "Snow-Globe42"),
    ("curl -u kane:rosebud https://x.example", "rosebud"),
    ("curl --user 'kane:rose bud' https://x.example", "rose bud"),
    ("mysql -uroot -prosebud db", "rosebud"),
    ("sshpass -p rosebud ssh kane@host", "rosebud"),
    ("docker login -u kane -p rosebud registry.example", "rosebud"),
    ("WIFI:T:WPA;S:Xanadu;P:rosebud;;", "rosebud"),
    ("db.example:5432:news:kane:rosebud", "rosebud"),
    (
        "1. abandon 2. ability 3. able 4. about 5. above 6. absent 7. absorb 8. abstract 9. absurd 10. abuse 11. access 12. acid",
        "absent",
    ),
    ("meine zwölf Wörter: " + SEED_PHRASE, SEED_PHRASE),
    ("\n".join(SEED_PHRASE.split()), "absorb"),
    ("xprv" + some(107, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"), "xprv"),
    ("L" + some(51, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"), "L"),
    ("wallet 0x" + some(64, HEX), "0x"),
    ("4111.1111.1111.1111", "4111"),
    ("4111\u20091111\u20091111\u20091111", "4111"),
    ("４１１１１１１１１１１１１１１１", "４１１１"),
    ("CC: 41111111 11111111", "41111111"),
    ("GB82WEST12345698765432", "WEST"),
    ("password: rose\u200bbud", "rose"),
    ("ｐａｓｓｗｏｒｄ：ｒｏｓｅｂｕｄ", "ｒｏｓｅ"),
    ("garage door code: 4821", "4821"),
    ("der Türcode ist 4821#", "4821"),
    ("código de verificación: 482 193", "482"),
    ("CVV 742", "742"),
    ("Geheimzahl: 4821", "4821"),
    ("backup codes: 8f3a-99bc", "8f3a-99bc"),
    ("Лозинка за вајфај је rosebud41", "rosebud41"),
    ("пароль: rosebud41, никому", "rosebud41"),
    ("პაროლი: Rosebud41", "Rosebud41"),
    ("Գաղտնաբառ՝ Rosebud41", "Rosebud41"),
    ("የይለፍ ቃል፡ rosebud41", "rosebud41"),
    ("Nenosiri la wifi ni rosebud41", "rosebud41"),
    ("Die wagwoord is rosebud41", "rosebud41"),
    ("the passwrod is rosebud41", "rosebud41"),
    ('"bananaSplit" is the password for the laptop', "bananaSplit"),
    ("abc-def-123 is the recovery code", "abc-def-123"),
    ("user,password\nkane,rosebud", "rosebud"),
    ("| user | password |\n|---|---|\n| kane | rosebud |", "rosebud"),
    ("name\tpasswort\nkane\trosebud", "rosebud"),
    ("Passwords:\nbank - Rosebud41\nmail - snow_globe", "snow_globe"),
    ("log in with kane / Rosebud41", "Rosebud41"),
    ("tool --password rosebud push", "rosebud"),
    ("echo rosebud | sudo -S apt update", "rosebud"),
    ("machine x.example login kane password rosebud", "rosebud"),
    ("punch in 4482 on the alarm panel", "4482"),
    ("kaart pin ٤٧٢٩", "٤٧٢٩"),
    ("my pin is four four eight two", "four four"),
    ("visa 411111 1111 111111", "411111"),
    ("iban de89 3704 0044 0532 0130 00", "3704"),
    ("[" + ",".join(map(str, range(64))) + "]", "1,2,3"),
    ("account number 483920175566", "483920175566"),
    # A plain word behind a verb, with an adverb, behind a change, and where it alone is in Latin letters.
    ("das Passwort ist jetzt wanderfalke", "wanderfalke"),
    ("la contraseña ahora es wanderfalke", "wanderfalke"),
    ("jag bytte lösenordet till wanderfalke", "wanderfalke"),
    ("zmieniłem hasło na wanderfalke", "wanderfalke"),
    ("новый пароль wanderfalke", "wanderfalke"),
    ("密码改成wanderfalke了", "wanderfalke"),
    ("user bob pass wanderfalke", "wanderfalke"),
    ("user   web14\npass   jubilate-deo", "jubilate-deo"),
    ("Kennwort: blue-otter-song", "blue-otter-song"),
    ('the password they ask for, ours is "purple walrus"', "purple walrus"),
    ("heslo je Kolo22-x a když nepůjde, zkus Svarecka7!", "Svarecka7!"),
    # A code of whatever it opens.
    ("the ipad code changed to 150609", "150609"),
    ("koda za vrata 4471", "4471"),
    ("0429 then hash", "0429"),
    ("safe: right 32, left 17, right 5", "right 32"),
    ("123456 is your Facebook code", "123456"),
    ("Steam Guard code: F7K2Q", "F7K2Q"),
    ("visa 4111 1111 1111 1111 exp 12/27 123", " 123"),
    # Keys as they are typed and spelt, and links that hold one.
    ("type in this setup key: jbsw y3dp ehpk 3pxp", "jbsw"),
    ("the passphrase is capital A, small r, dollar sign, nine, nine", "dollar sign"),
    ("h u n t e r 2 2 thats the password", "u n t e r"),
    ("apple recovery key OXXN-BIY6-HBHT-6WIX-D5LN-22NF-01KU", "HBHT"),
    ("Datadog\n  api  " + some(32, HEX) + "\n  app  " + some(40, HEX), some(40, HEX)),
    ("https://c.example/ical/bob/private-" + some(32, HEX) + "/basic.ics", some(32, HEX)),
    ("Cookie: lang=de; session_id=" + some(32), some(32)),
    ("requests.get(url, auth=('bob', 'wanderfalke'))", "wanderfalke"),
    ("Sicherheitsfrage: erstes Haustier, Antwort: Flocke", "Flocke"),
    (
        "wallet words: first lava, then clinic, weasel, patrol, fury, hazard, twin, robot, absorb, nominee, zebra, lemon",
        "zebra",
    ),
]


@each_row(("text", "secret"), TOLD)
def test_a_secret_is_seen_in_whatever_language_or_shape_it_is_told(text: str, secret: str) -> None:
    """Whoever pastes a password doesn't paste it in English prose with one blank."""
    masked = redact(text)
    assert secret not in masked
    assert MARK.search(masked)
    assert redact(masked) == masked


FRAGMENTS = [
    *(part for _, before, secret, after in FORMATS for part in (before, secret, after, before + secret + after)),
    *("password", "password: ", "token=", "密码是", "pin is ", "://", "://u:", "@", "[secret: ", "[secret: password]"),
    *(
        "]", '"', "'", "\\n", "%3D", " ", "\n", "-", "_", ".", ":", "=", "，", "a", "1", "1234", "-us1", "==", "eyJ",
        "İ", "é",
    ),
]  # fmt: skip
PASTED = st.lists(
    st.one_of(
        st.sampled_from(FRAGMENTS),
        st.builds(lambda text, cut: text[: cut % (len(text) + 1)], st.sampled_from(FRAGMENTS), st.integers(0, 200)),
        st.text(max_size=8),
    ),
    max_size=8,
).map("".join)


@given(PASTED)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    """Text passes the filter on the way in, on the way out and in logs; marks must not grow."""
    once = redact(text)
    assert redact(once) == once


@given(PASTED)
def test_what_is_left_of_a_text_stood_there_before(text: str) -> None:
    """Between the marks every piece is the original's, in the original's order, from its first to its last character."""
    pieces = MARK.split(redact(text))
    position = 0
    for piece in pieces:
        position = text.index(piece, position) + len(piece)
    assert text.startswith(pieces[0])
    assert text.endswith(pieces[-1])


PROSE = st.text(alphabet="abc def,.!? \n我们今天去公园é🙂", max_size=60)


@given(PROSE, st.sampled_from(FORMATS), PROSE)
def test_prose_around_a_secret_is_untouched(before: str, found: tuple[str, str, str, str], after: str) -> None:
    """Whatever people write before and after a secret, only the secret goes."""
    _, lead, secret, trail = found
    text = redact(f"{before} {lead}{secret}{trail}\n{after}")
    assert text.startswith(f"{before} {lead}")
    assert text.endswith(f"{trail}\n{after}")
    assert secret not in text


def test_every_secret_of_a_message_is_masked_whatever_stands_before_it() -> None:
    """One find must not hide another, of the same kind or not, before it or after it."""
    lines = [f"{before}{secret}{after}" for _, before, secret, after in FORMATS]
    for order in (lines, lines[::-1]):
        masked = redact("\n".join(order))
        assert [secret for _, _, secret, _ in FORMATS if secret in masked] == []
        assert len(MARK.findall(masked)) == len(FORMATS)


def test_a_mark_in_the_text_is_left_alone() -> None:
    """A mark says "password" and "key" itself and must not be taken for an announcement."""
    text = "password: [secret: password] is [secret: api key]: x1y2z3x1y2z3"
    assert redact(text) == text


def test_lower_case_keeps_every_position_for_all_characters_but_one() -> None:
    """Announcing words are searched in lower case and their values cut from the original at the same place."""
    longer = [char for char in map(chr, range(sys.maxunicode + 1)) if len(char.lower()) != 1]
    assert longer == ["İ"]
    assert redact("İİİ password: hunter2") == "İİİ password: [secret: password]"


def test_a_long_text_is_masked_as_a_short_one() -> None:
    """Long texts are searched in another way, which must find the same."""
    for _, before, secret, after in FORMATS:
        text = f"see: {before}{secret}{after}\n"
        for filler in (" " * 4_000, "äh " * 2_000):
            assert redact(text + filler) == redact(text) + filler
            assert redact(filler + text) == filler + redact(text)


@given(PASTED)
def test_whatever_is_pasted_a_long_text_is_masked_as_a_short_one(text: str) -> None:
    """Above all at the edges of a text, and where one find stands in the other's way."""
    for filler in ("\n" * 4_000, "。\n" * 2_000):
        assert redact(text + filler) == redact(text + filler[:9]) + filler[9:]
        assert redact(filler + text) == filler[:-9] + redact(filler[-9:] + text)


@each_row(
    "unit",
    ["password: hunter2\n", "4111111111111111 ", "[secret: password] token: a1b2c3d4 ", "密码是abc123 ", "://a:b@c "],
)
def test_a_text_of_thousands_of_secrets_is_masked_as_one_from_some_point_on(unit: str) -> None:
    """A part that is not read may be a secret; a second pass changes nothing."""
    masked = redact(unit * 30_000)
    assert masked.endswith("[secret: everything from here on]")
    assert len(masked) < 200_000
    assert "hunter2" not in masked
    assert "4111111111111111" not in masked
    assert redact(masked) == masked


def test_a_text_of_hundreds_of_secrets_keeps_what_stands_between_them() -> None:
    masked = redact("".join(f"line {i} password: hunter{i}\n" for i in range(900)))
    assert masked == "".join(f"line {i} password: [secret: password]\n" for i in range(900))


def test_importing_the_module_does_not_import_the_detection_library() -> None:
    """The library brings an HTTP client; a start pays for it only when a text looks like holding a vendor's key."""
    code = "import sys, memory.text.secrets.redact as g; g.redact('hello, my password is swordfish'); print('detect_secrets' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


# Shapes that make careless patterns quadratic: openings without an end, runs that almost match.
SHAPES = [
    *(
        "a", "-", "eyJ", "eyJaaaaaaaa.", "sk-", "xsk-aaaaaaaaaaaaaaaaaaaa ", "xoxb-1-", "==", "4111 ", "://a:",
        ".aaaaaa",
    ),
    *(
        "-----BEGIN PRIVATE" + " KEY-----", "password ", "password for a b c d ", "token: ", "密码", "1:", "<|", "\u200d",
    ),
]  # fmt: skip


@each_row("unit", SHAPES)
@each_row("work", [redact, clean, injection_flags])
def test_hostile_repetition_ends(work: Callable[[str], object], unit: str) -> None:
    """200 kB of any shape come back; with a quadratic pattern this test would not end within a suite's patience."""
    assert work(unit * (200_000 // len(unit))) is not None
