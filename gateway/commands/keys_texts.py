"""Texts about the keys of a person's programs."""

from __future__ import annotations

from typing import Final

EN: Final[dict[str, str]] = {
    "help.keys": "list, make or revoke keys for your programs: they can talk to me and use your memories",
    "option.keys.action": "make: a new key; revoke: end one; leave it out to list them",
    "option.keys.name": "make: a label, perhaps after chat, read or write; revoke: the key's number",
    "example.keys": "/keys\n/keys make Open WebUI\n/keys make read,write Claude Code\n/keys revoke 3",
    "keys.private": "Keys are only for you to see. Ask me in our private chat.",
    "keys.off": "The API is off, so no program can use a key. The operator turns it on with api: {{enabled: true}} in config.yaml.",
    "keys.none": "You have no keys.",
    "keys.how": "/keys make <label> makes one; /keys revoke <number> ends one.",
    "keys.line": "{number}. {label}: {may}; {used}",
    "keys.unused": "never used",
    "keys.used": "last used {at}",
    "keys.scope.chat": "chat",
    "keys.scope.read": "read memory",
    "keys.scope.write": "change memory",
    "keys.made": "Your key, which I show only once:\n{secret}\n{line}\nAddress: {url}/v1 (MCP: {url}/mcp). Whoever has this key counts as you there.",
    "keys.many": "You have {most} keys already. Revoke one first.",
    "keys.revoked": "The key is revoked. Programs that use it get no more answers.",
    "keys.none_such": "You have no key with that number. /keys lists them.",
    "keys.asks": "{label} asks:",
    "keys.through": "{name}, through {label}",
    "privacy.keys": "Programs that can use your memories with a key: {keys}. /keys lists and revokes them.",
    "usage.keys": "Your keys:",
    "platform.api": "the API",
}

ZH: Final[dict[str, str]] = {
    "help.keys": "列出、创建或撤销给你的程序用的密钥：程序可以和我对话、使用你的记忆",
    "option.keys.action": "make：新密钥；revoke：撤销；不填则列出",
    "option.keys.name": "make：名称，前面可写 chat、read 或 write；revoke：密钥编号",
    "example.keys": "/keys\n/keys make Open WebUI\n/keys make read,write Claude Code\n/keys revoke 3",
    "keys.private": "密钥只给你看。请在私聊里问我。",
    "keys.off": "API 已关闭，所以没有程序能使用密钥。管理员可在 config.yaml 中用 api: {{enabled: true}} 打开。",
    "keys.none": "你没有密钥。",
    "keys.how": "/keys make <名称> 创建密钥；/keys revoke <编号> 撤销密钥。",
    "keys.line": "{number}. {label}：{may}；{used}",
    "keys.unused": "从未使用",
    "keys.used": "上次使用：{at}",
    "keys.scope.chat": "对话",
    "keys.scope.read": "读取记忆",
    "keys.scope.write": "更改记忆",
    "keys.made": "你的密钥，只显示这一次：\n{secret}\n{line}\n地址：{url}/v1（MCP：{url}/mcp）。在那里，谁有这个密钥，谁就算作你。",
    "keys.many": "你已经有 {most} 个密钥。请先撤销一个。",
    "keys.revoked": "密钥已撤销。使用它的程序不会再得到回答。",
    "keys.none_such": "你没有这个编号的密钥。/keys 可列出它们。",
    "keys.asks": "{label} 请求：",
    "keys.through": "{name}（通过 {label}）",
    "privacy.keys": "可以用密钥使用你的记忆的程序：{keys}。/keys 可列出和撤销它们。",
    "usage.keys": "你的密钥：",
    "platform.api": "API",
}
