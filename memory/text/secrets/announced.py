"""Secrets that a word announces: "my password is ...", `api_key=...`, 密码是...

The words are told by language in one table. Which value counts depends on how it is tied to its word: behind a sign
(a colon, an arrow, a table's cell, a tag) almost anything does, behind a verb what looks like a password, and beside
the word, or before it, only what looks like nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from memory.text.secrets.folding import BARRIER, folded

#: Label, what counts as the value, and the words, in any case and with or without accents; a blank in one may be `_`,
#: `-` or nothing. "open" words have other meanings as well, so that a plain word behind them says nothing.
_WORDS: tuple[tuple[str, str, str], ...] = (
    (
        "password",
        "password",
        """
        password, passwd, pass word, pswd, pwd, pwrd, passcode, passwort, passwört, kennwort, kennwört,
        losungswort, zugangscode, wachtwoord, toegangscode, wagwoord, lösenord, adgangskode, adgangsord,
        kodeord, løsenord, passord, lykilorð, aðgangsorð, loyniorð, wifi key, network key, psk, mot de passe,
        motdepasse, mots de passe, mdp, mot secret, contraseña, contrasenya, contrasinal, palabra clave,
        clave de acceso, senha, palavra passe, palavra chave, parola d'ordine, parola chiave, parola de,
        parola mea, parolei, hasło, hasła, hasłem, heslo, hesla, heslem, lozinka, lozinku, lozinke, zaporka,
        zaporku, šifra za, šifru za, šifra od, šifra je, geslo, gesla, парол, лозинка, лозинку, шифра за,
        шифра је, гасло, құпиясөз, купуя сөз, сырсөз, нууц үг, рамз, серсүз, slaptažodis, slaptažod, jelszó,
        jelszav, salasana, salasõna, tunnussana, parool, parole ir, parole no, şifre, parolası, parolam,
        gizli söz, parolu, parolum, paroli, parolim, maxfiy so'z, açar söz, κωδικός, κωδικο, συνθηματικό,
        fjalëkalim, pasahitza, cyfrinair, pasfhocal, focal faire, facal faire, pasvort, pasvorto, пароль,
        პაროლ, գաղտնաբառ, ծածկագիր, סיסמה, סיסמא, סיסמת, كلمة السر, كلمة المرور, كلمة مرور, كلمة سر, كلمه السر,
        كلمه المرور, الرقم السري, باسورد, باسوورد, رمز عبور, گذرواژه, کلمه عبور, پسورد, پاسورد, پاس ورڈ,
        پاسورڈ, پاسوۆرد, وشەی نهێنی, پټنوم, पासवर्ड, कूटशब्द, সংকেত শব্দ, পাসওয়ার্ড, கடவுச்சொல், பாஸ்வேர்ட்,
        పాస్వర్డ్, పాస్‌వర్డ్, ಪಾಸ್ವರ್ಡ್, ಗುಪ್ತಪದ, പാസ്‌വേഡ്, പാസ്വേഡ്, രഹസ്യവാക്ക്, પાસવર્ડ, ਪਾਸਵਰਡ, ପାସୱାର୍ଡ,
        මුරපදය, රහස් පදය, ពាក្យសម្ងាត់, លេខសម្ងាត់, ລະຫັດຜ່ານ, စကားဝှက်, รหัสผ่าน, รหัสไวไฟ, พาสเวิร์ด,
        mật khẩu, mật mã, kata sandi, kata laluan, kata kunci, nywila, nenosiri, neno la siri, ọrọ aṣínà,
        kalmar sirri, iphasiwedi, igama lokungena, furaha sirta, erayga sirta, jelszo, tenimiafina, የይለፍ ቃል,
        パスワード, 合言葉, ぱすわーど, 비밀번호, 비밀 번호, 패스워드, 密码, 密碼, 口令, 通行碼, code word,
        password hint word
        """,
    ),
    (
        "password",
        "open",
        """
        pass, pw, psw, ww, mk, clave, parola, parole, sandi, şifra, šifra, šifru, шифра, лозинки, lösen,
        koodsõna, code wifi, code wi fi, código wifi, codice wifi, kod wifi, รหัส, パス, 暗号, 비번, 암호,
        wpa key, wpa2 key, wlan schlüssel, netzwerkschlüssel, clé wifi, code d'accès, access code,
        código de acceso, codice di accesso, код доступа, chiave wifi, credentials, creds, zugangsdaten,
        login pass, pa55word, p@ssword, contra de, contra del, contra es, رمز, sirri, passe, 🔑, 🔐, 🔒, 🗝
        """,
    ),
    (
        "password",
        "pair",
        """
        log in with, login with, log me in with, login, log in, sign in with, creds, credentials, zugangsdaten,
        anmelden mit, identifiants, accesos, acceso, credenciales, credenziali, credenciais, logowanie,
        přihlášení, логин, доступы, 账号, 帳號, アカウント, 계정, inlog, inloggning, giriş bilgileri, đăng nhập
        """,
    ),
    (
        "passphrase",
        "line",
        "passphrase, pass phrase, phrase de passe, frase de contraseña, frase segreta, passfrase, frase de acceso",
    ),
    ("password", "password", "passphrase, pass phrase, phrase de passe, frase de contraseña, 25th word"),
    (
        "security answer",
        "line",
        """
        security answer, secret answer, respuesta secreta, respuesta de seguridad, réponse secrète,
        risposta segreta, resposta secreta, sicherheitsantwort, geheime antwort, секретный ответ, 密保答案,
        answer to my security question
        """,
    ),
    (
        "seed phrase",
        "phrase",
        """
        seed, seed phrase, seed words, recovery phrase, recovery words, mnemonic, backup phrase, 助记词,
        助記詞, сид фраз, мнемоник, frase semilla, phrase de récupération, frase seed
        """,
    ),
    (
        "pin",
        "pin",
        """
        pin, pin1, pin2, puk, puk1, puk2, nip, pin code, pin koodi, pin kod, pin kode, pin number, pin码,
        pin碼, geheimzahl, geheimnummer, code pin, kod pin, pinkod, pinkode, pinkóð, пин, пін, пин код,
        пін код, pin კოდ, պին, पिन, पिन कोड, পিন, பின், 暗証番号, code confidentiel, code secret,
        código secreto, codice segreto, clave secreta, tunnusluku, tunnusluvu, الرمز السري, رمز الدخول,
        קוד סודי, קוד כניסה, קוד הכניסה, mã pin, รหัสพิน, รหัส atm, пинкод, quick pin, screen lock
        """,
    ),
    (
        "card code",
        "pin",
        """
        cvv, cvv2, cvc, cvc2, csc, security code, prüfziffer, prüfnummer, cryptogramme, codice di sicurezza,
        crypto, código de seguridad, código de segurança, cód, код безопасности, 安全码, 安全碼,
        セキュリティコード, digit code
        """,
    ),
    (
        "code",
        "pin",
        """
        otp, totp, one time code, one time password, einmalcode, tan, verification code, verifizierungscode,
        codice otp, bestätigungscode, 2fa, 2fa code, mfa code, login code, auth code, authentication code,
        security pin, code word, 验证码, 驗證碼, 校验码, 認証コード, 確認コード, ワンタイムパスワード,
        인증번호, 인증 코드, verification number, код подтверждения, код из смс, код із смс, ssn,
        social security number, combination, kombination, combinación, combo, combinaison, combinazione,
        combinação, kod do, kód k, kód do, mã otp, mã xác, kode otp, doğrulama kodu, onay kodu, ओटीपी,
        رمز التحقق, کد تایید, קוד אימות, รหัส otp, verificatiecode, engangskode, engångskod, kertakäyttökoodi
        """,
    ),
    (
        "code",
        "code",
        """
        code, kod, kód, koda, kode, koodi, codigo, codice, codi, kodi, kood, код, кодът, kóð, コード, 코드,
        κωδικός, رمز, كود, قוד, קוד, კოდ, կոդ, कोड, mã cửa, mã mở, mã khóa, mã số, รหัส, şifre, clave, key box,
        keybox, lockbox, padlock, suitcase lock, bike lock, keypad, digicode, zahlenschloss, candado, cadenas,
        lucchetto, cadeado, hangslot, kłódka, замок, домофон, 锁, 密码锁, 暗証, larm
        """,
    ),
    (
        "code",
        "entry",
        """
        punch in, type in, key in, enter, dial, press, opens on, opens with, unlocks with, unlock with, tippen,
        eintippen, eingeben, gib, tapez, taper, composez, teclea, marca, digita, digite, wpisz, zadej, введи,
        вводи, набери, набирай, 输入, 輸入, to confirm, to verify, to sign in, to log in
        """,
    ),
    (
        "code",
        "loosely",
        """
        backup code, recovery code, backup codes, recovery codes, wiederherstellungscode, code de secours,
        rescue code, códigos de respaldo, códigos de recuperación, codici di backup, резервные коды, 备份码,
        恢复码, バックアップコード
        """,
    ),
    (
        "account",
        "account",
        """
        account number, account no, account, checking account, routing number, sort code, iban, konto,
        kontonummer, numer konta, número de cuenta, cuenta, número da conta, conta corrente, numéro de compte,
        rekeningnummer, kontonr, číslo účtu, номер счета, социален номер, ssn, social, social security, cpf,
        cnpj, dni, nie, nif, codice fiscale, curp, pesel, bsn, personnummer, fødselsnummer, cpr, снилс, инн,
        aadhaar, steuer id, ahv, numéro de sécurité sociale, 身份证, 身份證字號, マイナンバー, 주민등록번호,
        passport number, reisepassnummer, numero di conto, tc kimlik
        """,
    ),
    (
        "api key",
        "key",
        """
        api key, api token, api secret, clave api, clé api, api schlüssel, chiave api, chave api, chave de api,
        app key, license key, licence key, product key, auth key, encryption key, maps key, signing key,
        master key, deploy key, 密钥, 密鑰, api密钥, ключ api, api ключ, klucz api, apiキー, api 키, oauth,
        subscription key, ключ апи, api anahtar
        """,
    ),
    ("access key", "key", "access key, account key, secret access key, access keys, account keys, shared key"),
    (
        "private key",
        "key",
        """
        private key, privkey, priv key, priv, clef privée, privater schlüssel, privaten schlüssel, clé privée,
        clave privada, chave privada, llave privada, chiave privata, приватный ключ, закрытый ключ,
        приватний ключ, klucz prywatny, soukromý klíč, özel anahtar, 私钥, 私鑰, 秘密鍵, 개인키, 개인 키,
        khóa riêng, khóa bí mật, kunci privat, privésleutel, privat nyckel, ιδιωτικό κλειδί, מפתח פרטי,
        المفتاح الخاص, private spend key, private view key, seed, wallet seed
        """,
    ),
    ("secret", "key", "secret, secret key, geheimnis"),
    ("token", "key", "token, 令牌, jeton, токен"),
    ("authorization", "header", "authorization"),
    ("bearer token", "bearer", "bearer"),
)

#: What ties a value to its word: to be, to be called, to set to, in many languages.
_IS = (
    "is|was|are|be|'s|its|it's|=|ist|war|lautet|heisst|heißt|heter|est|c'est|etait|sera|es|era|sera|siendo|este|e|é|è|esta|"
    "esto|ar|är|er|on|oli|jest|to|brzmi|je|byl|bylo|zni|је|е|є|це|это|есть|был|было|на|ειναι|είναι|la|là|adalah|ialah|ay|ni|"
    "hai|है|هي|هو|היא|הוא|است|yra|ir|bija|auf|zu|as|now|just|jetzt|nu|nou|ora|teraz|yw|ydy|eshte|është|ole|да|vagy|ia|న|ነው|"
    "é|adı|artıq|edi|endi|էր|է|որն|არის|არა|=>|-|—|para|pour|a"
)
_IS_CJK = "就是|是|为|為|改成|改为|改為|设为|設為|换成|は|が|、|는|은|이|คือ|เป็น"
_SIGN = (
    r"(?:[\\\"'`*_~)\]»”’]{0,4}[ \t]{0,4}(?:</?[a-z][^<>\n]{0,40}>){0,2}"
    r"(?::=|=>|->|[:=|→➜➡⇒👉↦>\t՝፡៖]|;(?=\S)|~{2,3}|"
    r"[\"'] ?, ?(?=[\"'\\])|[\"'\s,]{1,12}value[\"']? ?[=:]|</?[a-z][^<>\n]{0,40}>|[(\[])"
    r"[ \t]{0,8}(?:</?[a-z][^<>\n]{0,40}>[ \t]{0,4}){0,4}[ \t>|*_~`]{0,6}-?(?:\n[ \t>*|`-]{0,6}){0,3})"
)
#: What leads to a value: a sign, a verb, the end of the line, or nothing.
_LINK = (
    rf"(?:(?P<sign>{_SIGN})|[*_`\"')]{{0,3}}"
    rf"(?P<verb> {{0,2}}(?:(?<= )(?:{_IS})(?: now| jetzt| ahora| just)?|'s|{_IS_CJK}):? {{1,2}}\n{{0,2}})"
    r"|(?P<line> {0,2}[?？]?\n{1,2}(?:[-=~]{3,40}\n)?[ \t]{0,4}(?=\S))"
    r"|(?P<near>(?:[,.?!;…]|\.\.\.)? {1,2})(?=[^\s]{0,40}?[0-9_!#$%&*+=@^~]))"
)
#: Chinese and its neighbours go on without a space; what stands there in other letters is the value.
_LINK_CJK = rf"(?:(?P<sign>{_SIGN})|(?P<verb>(?:{_IS_CJK})?[: ]{{0,3}})(?=[\x21-\x7e「『“«]))"
_WORD = re.compile(rf"[^\s{BARRIER}]+")
_VALUED = re.compile(r"[0-9_!#$%&*+=@^~\"“«`]")
_VALUE_BEFORE = re.compile(r"[0-9\"`“«]|'\S+' ")
_LEADS = re.compile(r"[0-9_!#$%&*+=@^~:|>→➜➡⇒👉↦(\n\t\"«“「は은는이]")
_VERBS = frozenset(folded(_IS).split("|"))
#: Steps from word to word, in spite of a comma or the end of a sentence.
_STEP = (
    r"(?:'s|[,.?!;])? {1,2}(?:\([^()\n]{1,40}\)|\[[^\[\]\n]{1,40}\]|"
    rf"(?:[^\s:=|()<>.!?;,\"{BARRIER}]|\.(?=\w)){{1,40}})"
)
_STEP_CJK = rf"[^\x00-\x7f。、！？，{BARRIER}]| (?=[^\x00-\x7f])|(?i:wi-?fi)"
#: How many steps are taken.
_STEPS, _STEPS_CJK = 12, 14
#: Words before a name that tell a place or a purpose, or that the word is for it.
_FOR = (
    "for|to|of|on|at|in|from|with|and|or|since|by|user|login|account|für|zum|zur|vom|von|des|der|auf|im|in|bei|seit|de|del|"
    "della|do|da|du|pour|para|per|por|depuis|desde|dal|voor|van|do|dla|od|do|till|for|til|på|k|na|pro|от|для|на|від|за|с|ми|"
    "của|cho|en|el|la|les|le|di|a|sa|ka|ko|sur"
)
_QUOTED = (
    rf"\\?(?:\"(?P<a>[^\"\n{BARRIER}]{{3,400}}?)\\?\"|'(?P<b>[^'\n{BARRIER}]{{3,400}}?)\\?'"
    rf"|`(?P<c>[^`\n{BARRIER}]{{3,400}})`"
    rf"|“(?P<d>[^”\n{BARRIER}]{{3,400}})”|[「『](?P<e>[^」』\n{BARRIER}]{{3,400}})[」』]"
    rf"|« ?(?P<f>[^»\n{BARRIER}]{{3,400}}?) ?»)"
)
#: Chinese text and punctuation end a value.
_BARE = rf"(?![\\\"'`])[^\s{BARRIER}。、「」『』“”«»\u2e80-\u9fff\uac00-\ud7a3]{{3,400}}+"
#: What machines issue keeps to base64 and its URL-safe relatives.
_BARE_KEY = r"[A-Za-z0-9+/=_.~:%-]{4,400}+"
_DIGIT = (
    "(?:zero|one|two|three|four|five|six|seven|eight|nine|null|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|un|deux|trois|"
    "quatre|cinq|sept|huit|neuf|cero|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve)"
)
_NUMBER = (
    rf"(?:[A-Z]-)?[#*]{{0,2}}(?:{_DIGIT}(?:[ ,-]{{1,2}}{_DIGIT}){{3,7}}(?!\w)|[A-Z][0-9]{{4,6}}(?!\w)|"
    r"[0-9]{1,4}(?:[^\W\d_]|#)[0-9]{1,5}(?![^\W_]|-)|[0-9](?:[ -]{0,1}[0-9]){2,9}[#*]?"
    r"(?:[A-Z](?!\w))?(?![A-Za-z0-9_]|\.[0-9]|-[0-9]|,[0-9]{3}|:[0-9]))"
)
_ENDS_SENTENCE = r"""["'”’)\]]?(?: ?[.,!?;:。]|[ \t]{0,3}(?:\n|\Z|&&|</?[a-z]|-->|\|))"""
#: The mnemonics of wallets have 12 to 25 words.
_SEED_PHRASE = (
    r"""["'“]?((?:[^\W\d_]{3,10}(?:[^\w\n]|[0-9]){1,8}){11,24}[^\W\d_]{3,10}"""
    r"""|(?:[^\W\d_]{1,10}[ ,]){11,24}[^\W\d_]{1,10}|(?:[^\W\d_]{1,10}\n){11,24}[^\W\d_]{1,10})(?![^\W\d_])"""
)

#: What stands where a password would, in prose, in code and in forms.
_NO_PASSWORD = frozenset(
    """
    again also always anything available case compromised correct default different easy empty enough
    exactly false fine forgot forgotten gone good hard hash here hidden incorrect invalid just kept
    known later left long lost mandatory maybe missing must never none null okay only optional please
    random required reset right safe same secret secure sent short simple something still string strong
    that there this true undefined unique unknown valid very visible weak what where which wrong yes
    your yours falsch richtig geheim leer weg vergessen falsk falso vacía oublie olvidada dimenticata vergeten
    nothing password passwort text
    """.split()  # noqa: SIM905 - a word list reads better than sixty literals
)
#: Endings of what is told of a password ("is expired", "is working", "ist abgelaufen", "es incorrecta").
_TELLING = ("ed", "ing", "able", "ible", "ly")
_TELLING_ELSEWHERE = re.compile(
    r"(?:t|fen|ben|den|len|gen|sen|en|lich|bar|ig|isch|ung|[aio]d[aoe]s?|[aiu]t[aoe]s?|[cs]t[aoe]s?|os[aoe]|iv[aoe]|ic[aoe]|"
    r"ble|bile|ente|ique|ire|ee?s?|n[aeyo]|ny|ный|ен|ан|ija|ion|ia)\Z"
)
#: Names and measures that mix letters and digits and are no secrets, also with a blank between.
_KNOWN = re.compile(
    r"(?i)(?:i(?:phone|pad|os|cloud)|windows|win|office|microsoft|android|galaxy|pixel|ps|xbox|web|mp|h|covid|python|java|"
    r"sha|md|utf|base|x|v|ver|version|room|flat|gate|seat|row|level|step|area|section|chapter|page|ipv|wpa|auth|oauth|pbkdf|"
    r"argon|bcrypt|aes|rsa|ed|no|nr|port)[-_ ]?\d+\w{0,3}|1password|2fa|\d+[-\w]{0,2}fa|b2b|0x[0-9a-f]{8,40}|"
    r"\d+(?:st|nd|rd|th)|"
    r"\d+[.,]?\d*\+?-?(?:[a-z]{1,2}|min|hrs?|hours?|days?|char\w*|bits?|digits?|letters?|zeichen|stellig\w*|times|x\d+|[kmg]b)"
)
#: What a password is used on or what is done about it, not what it is.
_NO_LINK = re.compile(
    r"(?i)\s*(?:"
    r"manag|polic|reset|hint|field|length|streng|prompt|chang\w+ (?:on|in|at)|generat|rule|requir|expir|protect|"
    r"hash|recover|vault|rotat|cracker|auth|input|attempt|box|form|page|screen|minim|maxim|must|should|verge|"
    r"oubli|olvid|dimentic|zaboravl|забыл|forgot|count|limit|bucket|type|usage|cost|price|santa|sauce|garden"
    r")"
)
_NO_PASS = re.compile(
    r"(?i)\b(?:boarding|day|bus|ski|season|travel|hall|rail|press|mountain|entry|gate|visitor|train|metro|museum|event|"
    r"month\w*|annual|year\w*|week\w*|vip|backstage|by|first|second|third|free|lift|park\w*|interrail|to|will|must)\s\Z"
)
#: What a code opens: beside one of these, digits behind "code" are a secret; a postal or a discount code is none.
_OPENS = (
    r"(?<![^\W\d_])(?:"
    r"door|gate|alarm|allarm|access|acc[eè]s|acceso|accesso|acesso|zugang|t[uü]r|portal|portail|porte|puerta|porta|portao|"
    r"garage|garaje|safe|tresor|coffre|caja fuerte|cassaforte|cofre|\w{0,8}lock|schloss|building|entr[yeé]|eingang|"
    r"key ?box|"
    r"keypad|panel|verifi\w*|confirm\w*|bestatig|auth|2fa|mfa|otp|login|log ?in|sign.?in|whatsapp|telegram|google|"
    r"bank|phone|"
    r"voicemail|vault|suitcase|koffer|spind|d[oø]r|port|ovi|dvere|dveri|drzwi|domofon|bram\w|kapu|kapı|вход|двер|домофон|"
    r"подъезд|под'їзд|ворот|сейф|аларм|сигнал|сбер|банк|подтвержд|смс|sms|unlock|hotel|room|airbnb|wifi|wlan|"
    r"lockbox|your code|"
    r"tu codigo|ihr code|dein code|votre code|ваш код|bike|locker|house|haus|home|office|intercom|digicode|"
    r"secur|haust[uü]r|"
    r"hovedd[oø]r|\w{0,4}dyr\w*|ytterd[oö]rr|lås|las|larm|cancell|portone|poort|deur|hek|kluis|slot|brana|garaz|ajto|us[aă]|interfon|bejarat|πορτ|"
    r"калитк|гараж|aut[oó]|lift|parking|parkplatz|verja|reja|שער|بواب|ประตู|cửa|pintu|pagar|gerbang|card|amex|visa|clave|כניסה|דלת|باب|در|दरवाज"
    r")|"
    r"シリアル|ドア|玄関|金庫|認証|현관|문|인증|门|門|保险|锁"
)
_NO_OPENS = re.compile(
    r"(?i)(?:"
    r"zip|post\w*|plz|discount|promo\w*|coupon|error|status|country|area|bar|qr|source|dress|rabatt\w*|"
    r"gutschein\w*|descuento|sort|booking|tracking|exit|http|response|swift|color|colour|product|model|fehler|"
    r"iata|airport|hex|dial\w*|order|ref\w*"
    r")[ _-]?\Z"
)
#: Postal codes that are called by the same word; digits behind them are no code.
_POSTAL = re.compile(r"(?i) ?(?:post|ไปรษณีย์|pocztow|почт|bưu|郵便)")
#: Words between a value and the word for it, beside the verbs.
_TIES_BEFORE = _VERBS | frozenset(folded("als como comme that's — これ esa").split())
#: "... is a weak password" tells of one.
_ONE_OF = frozenset("a an another ein eine un une una um uma en ett et not no good".split())  # noqa: SIM905
_MEASURE = re.compile(
    r" ?(?:"
    r"char|digit|letter|bit|time|day|hour|minute|zeichen|mal|attempt|user|people|%|年|月|日|次|位|个|"
    r"個|回|번|자리|文字|桁"
    r")"
)

_Span = tuple[int, int, str]
_Look = Callable[[str, int], Iterator[_Span]]


def openings() -> Iterator[tuple[str, _Look]]:
    """Every announcing word in lower case, with what looks for its values: the start, end and label of each."""
    known: set[tuple[str, str]] = set()
    for label, kind, words in _WORDS:
        for word in (folded(one.strip()).lower() for one in words.split(",")):
            for spelt in sorted({word.replace(" ", blank) for blank in (" ", "_", "-", "")} | _misspelt(word, kind)):
                if (spelt, kind) not in known:
                    known.add((spelt, kind))
                    yield spelt, _look(spelt, kind, label)
    yield BARRIER, _again


def _misspelt(word: str, kind: str) -> set[str]:
    """A long word for a password with two letters changed over or one left out."""
    if kind != "password" or len(word) < 8 or not word.isascii() or " " in word:
        return set()
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 1)}
    return swapped | {word[:i] + word[i + 1 :] for i in range(1, len(word) - 1)}


def worth_reading(text: str, place: int, end: int) -> bool:
    """Returns whether anything near the word from `place` to `end` can be a value or lead to one."""
    return (
        _LEADS.search(text, end, end + 100) is not None
        or _VALUED.search(text, max(0, place - 80), place) is not None
        or not _VERBS.isdisjoint(text[end : end + 80].lower().split())
    )


def _again(text: str, place: int) -> Iterator[_Span]:
    """A second value behind a mark: "..., and the new one is ..."."""
    stop = text.find(BARRIER, place + 1, place + 100)
    words = list(_WORD.finditer(text, place + 1, stop if stop >= 0 else place + 100))[:9]
    for nth, word in enumerate(words):
        value = word.group().rstrip(".,;:!?)\"'")
        tied = not _TIES_AGAIN.isdisjoint(one.group().lower() for one in words[max(0, nth - 2) : nth])
        if tied and _mixed(value) and _stands_out(value, []):
            yield word.start(), word.start() + len(value), "password"
            return


_TIES_AGAIN = _VERBS | frozenset("and or und oder y o et ou e и или then dann / work".split())  # noqa: SIM905


@cache
def _pattern(source: str) -> re.Pattern[str]:
    # In the normal form as well, in which "é" is "e".
    return re.compile(folded(source), re.IGNORECASE)


def _look(word: str, kind: str, label: str) -> _Look:
    cjk = word[-1] >= "\u0e00" and word[-1].isalpha() and not "\u1200" <= word[-1] < "\u1380"
    # Short words stand in longer ones.
    alone = (len(word) <= 4 and word.isascii() and kind != "code") or kind in ("account", "entry", "pair")

    def look(text: str, place: int) -> Iterator[_Span]:
        end = place + len(word)
        if alone and (_in_word(text, place - 1) or _in_word(text, end)):
            return
        if kind == "entry":
            spans = [*_entered(text, place, end)]
        elif kind == "pair":
            spans = [*_paired(text, end)]
        else:
            spans = list(_behind(text, place, end, kind, cjk=cjk)) or list(_before(text, place, kind))
            spans += [*_columns(text, place, end, kind), *_listed(text, end, kind)]
        yield from ((*span, label) for span in spans)

    return look


def _in_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isalnum()


def _behind(text: str, place: int, end: int, kind: str, *, cjk: bool) -> Iterator[tuple[int, int]]:
    """Start and end of the value behind a word, and of what may be it before that."""
    at = end
    if not cjk and (
        tail := _pattern(r"(?:s|e?n|i|[_-][a-z]{1,12})?(?![^\W\d_])|(?!)" if kind == "key" else r"[^\W\d_]{0,7}").match(
            text, end
        )
    ):
        at = tail.end()
    plural = text[end:at].lower() in ("s", "es", "n")
    first = at
    for _ in range(_STEPS_CJK if cjk else _STEPS):
        link = _pattern(_LINK_CJK if cjk else _LINK).match(text, at)
        if link is not None:
            span = _value(text, place, text[first:at], link, kind, cjk=cjk, plural=plural)
            if span is not None and (
                _classes(text[slice(*span)]) > 3 or at == first or not _NO_LINK.match(text, first)
            ):
                yield span
                if link.groupdict().get("near") is None or _classes(text[slice(*span)]) > 2:
                    return
        step = _pattern(_STEP_CJK if cjk else _STEP).match(text, at)
        if step is None:
            return
        at = step.end()
    return None


def _before(text: str, place: int, kind: str) -> Iterator[tuple[int, int]]:
    """Start and end of a value before its word: "... is my password", "... as the password"."""
    if kind not in ("password", "open", "pin", "code", "key", "loosely"):
        return
    if not _VALUE_BEFORE.search(text, max(0, place - 80), place):
        return
    words = list(_WORD.finditer(text, max(0, place - 80), place))[-8:]
    between = [word.group().lower() for word in words]
    for nth in range(len(words) - 1, -1, -1):
        start, end = words[nth].span()
        start += len(words[nth].group()) - len(words[nth].group().lstrip("\"'`“«¿¡("))
        end -= len(words[nth].group()) - len(words[nth].group().rstrip("\"'`”»,;:.!?"))
        value, later = text[start:end], between[nth + 1 :]
        tied = len(later) <= 5 and (
            end < words[nth].end()
            or not _TIES_BEFORE.isdisjoint(later)
            or any(one[0] in "かは" for one in later)
            or not _VERBS.isdisjoint(between[max(0, nth - 2) : nth])
        )
        if not _ONE_OF.isdisjoint(later[-3:]) or len(value) < 3:
            continue
        if kind in ("pin", "code"):
            match = _pattern(_NUMBER).fullmatch(text, start, end)
            right = tied and match and len(later) <= 4 and (kind == "pin" or _opens(text, start, place))
        elif kind in ("key", "loosely"):
            right = tied and _is_key(value, 16 if kind == "key" else 8)
        else:
            quoted = words[nth].group()[0] in "\"'`“«" and not _VERBS.isdisjoint(later[:1])
            named = nth and _is_for(between[nth - 1]) and _classes(value) < 3 and _TIES_BEFORE.isdisjoint(later)
            right = _stands_out(value, []) and _mixed(value) and not named and (tied or _classes(value) > 3)
            right = right and "://" not in value
            right = right or (quoted and _may_be_plain(value, sure=True))
        if right:
            yield start, end
            return


def _entered(text: str, place: int, end: int) -> Iterator[tuple[int, int]]:
    """The digits that are typed, beside a word for typing them and what they open."""
    for match in re.compile(r"(?<![\w.,:/-])[#*]?(?P<v>[0-9]{3,8})#?(?![\w%]|[.,:/-]\d)").finditer(
        text, max(0, place - 30), end + 20
    ):
        word = text[: match.start()].rsplit(None, 1)[-1:] if match.start() > end + 1 else []
        at_ = bool(word) and _is_for(word[0])
        if not at_ and _opens(text, max(0, place - 30), end + 30) and not _counted(text, match.end()):
            yield match.span("v")


def _paired(text: str, end: int) -> Iterator[tuple[int, int]]:
    """The second of two values that stand behind a word for both: "log in with dave / ..."."""
    match = re.compile(r"[^\n:]{0,40}?:? \S{2,40}(?: ?[/,|] ?|:)(?P<v>[^\s/]{4,80})").match(text, end)
    if match and _stands_out(match["v"].rstrip(".,;)"), []):
        yield match.start("v"), match.start("v") + len(match["v"].rstrip(".,;)"))


def _columns(text: str, place: int, end: int, kind: str) -> Iterator[tuple[int, int]]:
    """Yields the cells under a word that heads a column."""
    if kind not in ("password", "open", "pin", "key"):
        return
    if not re.compile(r'[^\W\d_]{0,7}[ "*`]*[\t|;,\n]').match(text, end):
        return
    start = text.rfind("\n", max(0, place - 200), place) + 1
    stop = text.find("\n", end, end + 200)
    separator = next((one for one in "\t|;," if one in text[start:stop]), None)
    if separator is None or stop < 0 or not re.compile(r"[\w .\-*/\"`\t|;,]+").fullmatch(text, start, stop):
        return
    heads = _cells(text, start, stop, separator)
    nth = next((i for i, (first, last) in enumerate(heads) if first <= place < last), 0)
    above = _cells(text, text.rfind("\n", max(0, start - 200), max(0, start - 1)) + 1, max(0, start - 1), separator)
    if any(last - first > 30 for first, last in heads) or len(above) == len(heads) > 1:
        return
    for _ in range(40):
        start, stop = stop + 1, text.find("\n", stop + 1, stop + 400)
        stop = len(text) if stop < 0 and len(text) < start + 400 else stop
        cells = _cells(text, start, stop, separator)
        if stop < start or len(cells) != len(heads):
            return
        first, last = cells[nth]
        while first < last and text[first] in ' "`*':
            first += 1
        while first < last and text[last - 1] in ' "`*':
            last -= 1
        plain = separator == "," and " " in text[first:last]
        if last - first > 2 and text[first:last].strip("-: ") and not plain and BARRIER not in text[first:last]:
            yield first, last


def _cells(text: str, start: int, stop: int, separator: str) -> list[tuple[int, int]]:
    return [
        match.span()
        for match in re.compile(rf'(?<![^\n{separator}])(?:"[^"\n]*"|[^"\n{separator}]*)').finditer(text, start, stop)
    ]


def _listed(text: str, end: int, kind: str) -> Iterator[tuple[int, int]]:
    """The values of a list: a line or a part of one each, with what it is for before it."""
    if kind not in ("password", "open", "pin", "loosely"):
        return
    several = kind == "loosely" or text[end : end + 1] in ("s", "n", "e", "y", "и")
    head = re.compile(r"[^\n:]{0,60}+(?::(?= |\n)|(?=\n))" if several else ":?(?=\n)").match(text, end)
    if head is None:
        return
    lines = text.startswith("\n", head.end())
    item = re.compile(
        rf"\n*[^\n{BARRIER}]{{0,60}}?(?P<tie> [-=:→>] |: )?(?P<v>[^\s,;{BARRIER}]{{4,80}})[ .]*(?:(?=\n)|\Z"
        + (")" if lines else r"|[,;] )")
    )
    at = head.end()
    for _ in range(40):
        match = item.match(text, at)
        value = match["v"].rstrip(".,;") if match else ""
        if match is None or not (
            (_strong(value) and len(value) > 4)
            or (_may_be_plain(value, sure=True) and match["tie"])
            or value.strip("#*").isdigit()
        ):
            return
        yield match.start("v"), match.start("v") + len(value)
        at = match.end()


def _opens(text: str, start: int, end: int) -> bool:
    return _pattern(_OPENS).search(text, max(0, start - 40), end + 30) is not None


def _is_for(word: str) -> bool:
    return _pattern(_FOR).fullmatch(word) is not None


def _value(  # noqa: PLR0911 - one way out for each kind
    text: str, place: int, of: str, link: re.Match[str], kind: str, *, cjk: bool, plural: bool
) -> tuple[int, int] | None:
    """Start and end of the value that `link` leads to, behind the words `of`, if it is a secret."""
    start, sign, verb = link.end(), link["sign"] or "", link["verb"]
    near = not sign and not (verb or "").strip() and (cjk or link["line"] is None)
    if of.strip() and sign.lstrip()[:1] in ("'", '"') and "," in sign:
        return None
    if kind in ("pin", "code"):
        return _number(text, place, link, of, kind, near=near)
    if kind in ("line", "phrase"):
        source = _SEED_PHRASE if kind == "phrase" else rf"[\"'“«]?([^\n{BARRIER}\"”»]{{4,200}})"
        told = sign or (verb and (kind == "phrase" or text[start : start + 1] in ('"', "'", "“", "«", "「")))
        match = _pattern(source).match(text, start) if told and (kind == "phrase" or _ties(of)) else None
        return match.span(1) if match else None
    if kind == "account":
        match = _pattern(r"[A-Z]{0,6}[0-9](?:[ .-]?[0-9A-Z]){5,25}(?!\w)").match(text, start)
        return match.span() if match and sum(map(str.isdigit, match.group())) > 5 and len(of.split()) < 3 else None
    span = _stretch(text, start, _BARE_KEY if kind in ("key", "bearer") else _BARE, kind)
    if span is None:
        return None
    value = text[span[0] : span[1]]
    if kind in ("password", "open"):
        if value.strip("*#").isdigit():
            return _number(text, place, link, of, kind, near=near) if len(value) > 3 else None
        tied = _ties(of) and not plural
        right = _is_password(text, place, span, of.split(), link, kind, cjk=cjk, near=near, tied=tied)
    elif kind == "header":
        scheme = _pattern(r"(?:bearer|basic|token|bot|digest|apikey) {1,3}\Z").search(text, start, span[0])
        right = sign != "" and (_mixed(value) or scheme is not None)
    elif kind == "bearer":
        right = _mixed(value) and len(value) >= 20
    elif kind == "loosely":
        right = len(value) >= 6 and any(map(str.isdigit, value))
    else:
        right = _is_key(value, 8 if sign or cjk else 12 if verb else 20)
    return span if right else None


def _is_password(
    text: str,
    place: int,
    span: tuple[int, int],
    words: list[str],
    link: re.Match[str],
    kind: str,
    *,
    cjk: bool,
    near: bool,
    tied: bool,
) -> bool:
    """Returns whether the text at `span` is the password that the word at `place` announces."""
    value, after = text[slice(*span)], text[span[1] : span[1] + 1]
    if kind == "open" and not _is_pass(text, place, value):
        return False
    if near and not cjk:
        return _stands_out(value, words) and after not in (":", "=")
    if _strong(value):
        return len(value) >= (6 if near or not (link["sign"] or link["verb"]) else 4)
    sign, quoted = (link["sign"] or "").strip(), after != "" and after in "\"'`”»」』\\"
    final = cjk or quoted or sign in ("=", ":=") or _pattern(_ENDS_SENTENCE).match(text, span[1])
    if (
        not tied
        or not final
        or sign in ("(", "[")
        or len(words) > 4
        or (kind == "open" and (words or not link["sign"]) and len(value) < 15)
    ):
        return False
    # "Is" is a Dutch word as well; what an English word announces is told in English.
    english = text[place : place + 4].lower() in ("pass", "pwd ", "wifi", "wi-f", "code")
    is_ = english and (link["verb"] or "").strip(" :\n") in ("is", "was", "are")
    parted = re.fullmatch(r"\w{3,}\.\w{2,}|[A-Z]\w+-[A-Z]\w+", value) is not None
    return _may_be_plain(value, sure=cjk or quoted or bool(link["sign"]) or is_ or parted)


def _stands_out(value: str, words: list[str]) -> bool:
    """Returns whether a value that nothing ties to its word can only be a secret; farther off it must look more so."""
    if len(value) < 6 or set(value) & set('=()[]{}<>"') or not _strong(value) or (words and _is_for(words[-1].lower())):
        return False
    classes = _classes(value)
    if len(words) > 3:
        return classes >= 3 or (classes == 2 and len(value) > 8 and value[0].islower() and value[-1].isdigit())
    return _mixed(value) or any(map(_is_sign, value))


def _classes(value: str) -> int:
    """How many it mixes of small letters, capitals, digits and signs."""
    return sum(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit, _is_sign))


def _is_sign(char: str) -> bool:
    return char in "_#$%&*+=@^~!"


def _is_pass(text: str, place: int, value: str) -> bool:
    """Returns whether "pass" is short for a password rather than a ticket."""
    if text[place : place + 4].lower() != "pass":
        return True
    flight = re.fullmatch(r"[A-Z]{1,3}-?[0-9]{1,4}[A-Z]?", value)
    return flight is None and _NO_PASS.search(text, max(0, place - 20), place) is None


def _number(  # noqa: PLR0911 - each rule that a number is no secret stands alone
    text: str, place: int, link: re.Match[str], of: str, kind: str, *, near: bool
) -> tuple[int, int] | None:
    """Start and end of the digits of a PIN or a code."""
    match = _pattern(_NUMBER).match(text, link.end())
    if match is None or re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|(?:19|20)[0-9]{2}-", match.group()):
        return None
    if _counted(text, match.end()) or (kind == "code" and not _opens(text, place, match.start())):
        return None
    if _NO_OPENS.search(text, max(0, place - 14), place) or _POSTAL.search(text, place, link.end()):
        return None
    word = of.rsplit(maxsplit=1)[-1].lower() if of.split() else ""
    if (link["sign"] and not _ties(of) and len(of.split()) > 2) or (
        near and len(of.split()) > (4 if kind in ("password", "open") else 8)
    ):
        return None
    if near and (_is_for(word) or _KNOWN.fullmatch(f"{word} {match.group()}")):
        return None
    postal = len(re.sub(r"[^0-9]", "", match.group())) == 6 and _pattern(r"(?:pin ?code|पिन कोड)\W").match(text, place)
    if postal and (
        not _pattern(r"(?:my|your|our|the|card|phone) \Z").search(text, max(0, place - 6), place)
        or re.match(r", [A-Z]", text[match.end() : match.end() + 3])
    ):
        return None
    return match.span() if kind != "open" or not near or len(match.group()) > 5 else None


def _counted(text: str, end: int) -> bool:
    """Returns whether a measure follows the number."""
    return _MEASURE.match(text, end) is not None


def _ties(of: str) -> bool:
    """Returns whether nothing stands between word and value but the purpose of the value."""
    return (
        not of.strip()
        or re.match(folded(rf"(?i) {{1,2}}(?:(?:{_FOR}|wi-?fi|wlan)(?!\w)|[(\[])"), of) is not None
        or len(of.split()) == 1
    )


def _stretch(text: str, start: int, bare: str, kind: str) -> tuple[int, int] | None:
    """Start and end of what stands at `start` as one value, in quotes or not."""
    if kind == "header":
        scheme = _pattern(r"""(?:\\?["'])?(?:bearer|basic|token|bot|digest|apikey) {1,3}""").match(text, start)
        start = scheme.end() if scheme else start
    match = _pattern(_QUOTED).match(text, start)
    if match is not None:
        span = match.span(match.lastgroup or 0)
    else:
        match = _pattern(bare).match(text, start)
        if match is None:
            return None
        value = match.group().split("</")[0]
        if value[-1:] == ")" and "(" in value:
            value += "\0"
        kept = value.rstrip(".,:;?)]}|\"'`\0")
        span = start, start + len(kept)
    value = text[span[0] : span[1]]
    code = re.match(
        r"(?:[A-Za-z_]\w*(?:\.\w+)*[(\[]|(?:self|os|settings|config|process|env|args|user|request|options)\.)", value
    )
    placeholder = len(value) < 3 or value[0] in "<{$%(" or "://" in value or not value.strip("*•.-_xX…")
    return None if placeholder or code else span


def _strong(value: str) -> bool:
    """Returns whether `value` can only be a password: digits among letters, or signs or capitals inside."""
    core = value.strip("*_~()[]!-.")
    if (
        len(core) < 4
        or _KNOWN.fullmatch(core)
        or re.fullmatch(r"\S+@\S+\.\w+|[\d./:-]+|\w+\.[a-z]{2,4}(?:/\S*)?|[\w.-]+/[\w./-]+\.[a-z]{2,4}", core)
    ):
        return False
    odd = any(map(_is_sign, core[:-1])) and sum(map(str.isalnum, core)) >= 3 and any(map(str.isalpha, core))
    camel = len(core) >= 8 and core.isalpha() and not core.islower() and not core.isupper() and not core[1:].islower()
    return odd or camel or _mixed(core)


def _may_be_plain(value: str, *, sure: bool) -> bool:
    """Returns whether a word without digits and signs can be a password rather than describe one."""
    core = value.strip("*_~()[]!-").lower()
    if len(core) < 4 or core in _NO_PASSWORD or core.endswith(_TELLING):
        return False
    return sure or len(core) >= 15 or (len(core) >= 12 and not _TELLING_ELSEWHERE.search(core))


def _is_key(value: str, least: int) -> bool:
    return (
        len(value) >= least and _mixed(value) and not _KNOWN.fullmatch(value) and not set(value) & set("()[]{}$<>,\"' ")
    )


def _mixed(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))
