"""Every fixed text a person may be shown, in each language, and how dates read in it.

Invariant: all languages have the same keys with the same fields (a test holds this).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from gateway.attachments import plain_name
from gateway.phrases import Language
from memory.errors import Derived, MemoryFault, NotCurrent, NotYours

_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")
#: Letters of names that would be Markdown, and what stands for them; between letters an underscore is none.
_MARKS = str.maketrans("*`~|\\", "＊｀～｜＼")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

CATALOGUE: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "help.start": "say hello",
        "help.help": "what I can do",
        "help.stop": "stop the answer that is being made",
        "help.allow": "let somebody in, or with here this group",
        "help.block": "shut somebody out, or with here this group",
        "help.pair": "a code that lets one person in",
        "help.dead": "messages that could not be delivered; purge drops them",
        "start.done": "Hello, I am {name}. Just talk to me; I remember what you tell me about yourself. /help shows what I can do.",
        "first.private": "By the way, only if you like: what may I call you, which language do you prefer, and which timezone are you in?",
        "first.group": "By the way: what is said to me here may be remembered, for this group only and never in your private chats; /memory shows it. To stay out of it just don't address me, for I neither answer nor keep what is not meant for me, and /forget <id> removes one of yours.",
        "stop.asked": "Stopping.",
        "stop.nothing": "There is nothing to stop: I am not answering anything here.",
        "stop.done": "Stopped. Your message is kept.",
        "allow.person": "{id} may talk to me now.",
        "allow.group": "People in this group may talk to me now.",
        "allow.already": "That was so already.",
        "block.person": "{id} may no longer talk to me.",
        "block.group": "I no longer listen in this group.",
        "block.already": "That was so already.",
        "block.admin": "{id} is an admin in the configuration and can only be taken out there.",
        "grant.allowed.person": "  let in: {id}",
        "grant.allowed.group": "  let in: the group {id}",
        "grant.blocked.person": "  shut out: {id}",
        "grant.blocked.group": "  shut out: the group {id}",
        "pair.private": "A code is for one person's eyes: ask me in our private chat.",
        "pair.done": "Give this code to the one who may talk to me; they send it to me within ten minutes, and it works once: {code}",
        "pair.many": "Three codes are open already. The first ends at {until}.",
        "pair.welcome": "Welcome! You may talk to me now. /help shows what I can do.",
        "pair.wrong": "That code is not right, or it is no longer valid. Ask for a new one.",
        "pair.locked": "Too many wrong codes. Try again in an hour, or ask an admin to let you in by your id: {id}",
        "error.fetch": "I could not get in time what you sent with your message. Please send it once more.",
        "not_here": "I don't take commands here, or not from you.",
        "stranger": "I am a private bot and don't know you yet. If my owner gave you a code, send it to me. Your id, for them: {id}",
        "bad.rate": "That is faster than I can listen: I leave out what you send until you slow down a little.",
        "again.ask": "I may not have been able to show you my answer to this. Shall I show it again?",
        "again.button": "Show the answer again",
        "again.gone": "That answer has been shown, or is no longer there.",
        "late.ask": "You wrote while I was away. Shall I answer it now?",
        "late.button": "Answer now",
        "answer.over": "That question is no longer open, or was not put to you.",
        "dead.private": "That names other people's chats: ask me in our private chat.",
        "dead.told": "I had an answer to this, but it could not be shown here. Please ask again.",
        "late.gone": "There is nothing left to answer.",
        "dead.none": "Everything could be delivered.",
        "dead.head": "Could not be delivered, newest first:",
        "dead.line": "{id}  {key}  {date}  {why}",
        "dead.hint": "/dead purge drops them all.",
        "dead.purged": "Dropped: {count}.",
        "help.new": "start afresh; what I remember stays",
        "help.status": "how I am doing: model, memory, what waits",
        "help.memory": "what I remember of you: list, search, show, history",
        "help.remember": "keep something",
        "help.correct": "put something right; the old version keeps its dates",
        "help.forget": "remove one memory",
        "help.why": "what entered my last reply, and where it is from",
        "option.memory.action": "what to do; without it, list",
        "option.memory.rest": "what to search for, the id of a memory, or the page of the list",
        "option.remember.text": "what to keep",
        "option.correct.id": "which memory",
        "option.correct.value": "what it should say; leave it out to edit what it says now",
        "option.forget.id": "which memory",
        "option.allow.who": "a numeric user id, or here for this group; leave it out for the list",
        "option.block.who": "a numeric user id, or here for this group; leave it out for the list",
        "option.dead.action": "purge drops them all",
        "form.remember.title": "Remember",
        "form.remember.label": "What shall I keep?",
        "form.correct.title": "Correct {id}",
        "form.correct.label": "What it should say",
        "help.head": "Just talk to me. I remember what you tell me about yourself. Commands:",
        "command.unknown": "There is no command /{name}.{hint} /help lists them all.",
        "command.hint": " Did you mean /{name}?",
        "command.usage": "Usage: {usage}",
        "new.done": "A fresh start: I no longer look at what was said before, but what I remember stays.",
        "status.agent": "Agent: {agent} · model: {model}",
        "status.offline": "offline (no language model)",
        "status.session": "Session: {key}",
        "status.memory": "Memory: {live} current of {total} in all, for you here",
        "status.memory_off": "Memory: switched off for this agent",
        "status.window": "Conversation: {messages} messages, about {tokens} of {limit} tokens",
        "status.learning": "Learning: {unread} messages unread, {waiting} pieces waiting, {parked} set aside,"
        " {budget} waiting for tomorrow's tokens; last: {last}",
        "status.words_only": "Search: by words",
        "status.no_embedder": "Search: by words (no embedding model is loaded)",
        "status.embedding": "Search: by words and meaning ({model}), {done} of {total} texts embedded",
        "status.never": "never",
        "status.mail": "Mailbox: {inbound} to answer, {outbound} to show",
        "status.usage": "Tokens in 24 h: {tokens_in} in, {tokens_out} out",
        "status.store": "Store: {path} · {sqlite}",
        "memory.none": "I remember nothing of you here yet.",
        "memory.head": "What I remember ({shown} of {total}):",
        "memory.more": "More: /memory list {page}",
        "memory.profile": "In short: {profile}",
        "memory.line": "{id}  {said} (told {date})",
        "memory.old_line": "{id}  {said} (told {date}, until {until})",
        "memory.not_found": "Nothing I remember matches “{query}”.",
        "memory.found": "Found:",
        "memory.more_found": "There is more; name it more exactly to see it.",
        "memory.unknown_id": "I know no memory {id} here. /memory list shows the ids.",
        "memory.show": "{id}: {said}\n{kind}, {category} · {key} = {value}\nTold on {date}, {origin}{times}{state}",
        "memory.origin.extracted": "picked up from our talk",
        "memory.origin.told": "because you asked me to keep it",
        "memory.origin.admin": "by an admin",
        "memory.origin.imported": "imported",
        "memory.origin.derived": "put together from other memories",
        "memory.times": "; told again {count}×",
        "memory.state.replaced": "; no longer holds since {until}",
        "memory.state.archived": "; set aside",
        "memory.source": "From your message of {date}: “{text}”",
        "memory.source_erased": "From a message of {date}, whose words are erased",
        "memory.flags": "Looks like an instruction ({flags}); it is treated as plain text.",
        "memory.not_yours": "{id} can only be changed by the one who said it or the one it is about.",
        "memory.derived": "{id} is a summary of {ids}. Correct or forget those; it follows them.",
        "memory.history": "Versions, oldest first:",
        "memory.version": "{id}  {said} (from {since} to {until})",
        "memory.version_now": "{id}  {said} (since {since})",
        "memory.off": "This agent keeps no memory; nothing is learned here.",
        "remember.done": "Saved: {list}",
        "remember.nothing": "There is nothing in that I could keep.",
        "correct.done": "Corrected: {new} ({new_id}). Before: {old} ({old_id}), kept with its dates.",
        "correct.same": "{id} says that already.",
        "correct.replaced": "{id} is an old version. Correct the one that holds now: /memory history {id}",
        "forget.ask": (
            "Remove {id} “{said}” from memory? The words you said stay in our history, but I no longer learn from"
            " them or recall them. Answer yes or no."
        ),
        "forget.done": (
            "Removed {id} from memory: it is no longer known, recalled or learned from its message. The words you"
            " said stay in our history."
        ),
        "forget.gone": "That memory is not there any more.",
        "forget.kept": "Kept.",
        "why.none": "I have not replied here yet.",
        "why.nothing": "Nothing from memory was in my last reply.",
        "why.head": "In my last reply:",
        "why.known": "Known all along:",
        "why.found": "Found for your message:",
        "why.unused": "Found, but not needed:",
        "why.line": "{id}  {said} (told {date}){score}{source}",
        "why.quote": "{said} ({date}){score}",
        "why.score": " · score {score} ({parts})",
        "why.source": " · from “{text}”",
        "why.forgotten": "one memory that is forgotten since",
        "why.cost": "Model: {model}, {tokens_in} tokens in, {tokens_out} out",
        "yes": "yes",
        "no": "no",
        "bad.unreadable": "There was nothing readable in that message, so I did nothing with it.",
        "attach.image": "the picture",
        "attach.audio": "the recording",
        "attach.video": "the video",
        "attach.file": "the file",
        "attach.other": "the attachment",
        "attach.too_large": "({name}: it is too large for me.)",
        "attach.no_reader": "({name}: I can't read this kind of file.)",
        "attach.unreadable": "({name}: it is damaged, or not what its name says.)",
        "attach.unreachable": "({name}: I could not fetch it; please send it once more.)",
        "attach.no_transcriber": "({name}: I can't listen to recordings.)",
        "attach.not_transcribed": "({name}: I could not make out what is said.)",
        "attach.empty": "({name}: there is no text in it.)",
        "attach.off": "({name}: I don't read attachments.)",
        "attach.locked": "({name}: it needs a password.)",
        "attach.no_sight": "({name}: my model can't see pictures.)",
        "bad.queue": "You are faster than I am: {count} messages wait here already. This one was not taken; say it again in a moment.",
        "note.long": "The message has {length} characters; you see its first and last {shown}.",
        "long.told": "(Your message has {length} characters. All of it is kept, but the model saw only its beginning and end.)",
        "error.model_auth": "I can't reach my language model: its key is missing or refused. Your message is kept. The operator finds details in the log.",
        "error.model_unavailable": "My language model can't be reached right now. Your message is kept; please try again in a while.",
        "error.model_rate_limited": "My language model is busy or its quota is used up. Your message is kept; please try again in a while.",
        "error.context_overflow": "This conversation has become too long for my language model. Your message is kept; /new starts afresh.",
        "error.model_refused": "My language model refused the request. Your message is kept. The operator finds details in the log.",
        "error.bad_completion": "My language model gave no usable answer. Your message is kept; please try again.",
        "error.model": "My language model failed. Your message is kept; please try again.",
        "error.deadline": "That took longer than {seconds} seconds, so I stopped. Your message is kept; please try again.",
        "error.storage": "I could not save that: {reason}",
        "error.internal": "Something went wrong on my side. Your message is kept. The operator finds details in the log.",
    },
    "zh": {
        "help.start": "打个招呼",
        "help.help": "我能做什么",
        "help.stop": "停止正在生成的回答",
        "help.allow": "让某人使用；here 表示本群",
        "help.block": "不让某人使用；here 表示本群",
        "help.pair": "生成让一个人加入的配对码",
        "help.dead": "未能送达的消息；purge 将其清除",
        "start.done": "你好，我是 {name}。直接跟我聊天就好，我会记住你说的关于自己的事。/help 查看我能做什么。",
        "first.private": "顺便问一句（不想答也没关系）：我该怎么称呼你？你习惯用哪种语言？在哪个时区？",
        "first.group": "顺便说一下：在这里对我说的话可能会被记住，只用于本群，不会出现在你们的私聊里，/memory 可查看。不想被记住，不对我说就行：没有对我说的话，我既不回答也不保存；/forget <编号> 可移除你自己的一条。",
        "stop.asked": "正在停止。",
        "stop.nothing": "没有可停止的：我没有在这里回答什么。",
        "stop.done": "已停止。你的消息已保存。",
        "allow.person": "{id} 现在可以跟我说话了。",
        "allow.group": "本群的人现在可以跟我说话了。",
        "allow.already": "本来就是这样。",
        "block.person": "{id} 不能再跟我说话了。",
        "block.group": "我不再听本群的消息。",
        "block.already": "本来就是这样。",
        "block.admin": "{id} 是配置中的管理员，只能在配置里移除。",
        "grant.allowed.person": "  已允许：{id}",
        "grant.allowed.group": "  已允许：群 {id}",
        "grant.blocked.person": "  已禁止：{id}",
        "grant.blocked.group": "  已禁止：群 {id}",
        "pair.private": "配对码只能给一个人看：请在私聊中向我要。",
        "pair.done": "把这个配对码交给可以跟我说话的人；十分钟内发给我，只能用一次：{code}",
        "pair.many": "已有三个配对码在用。第一个到 {until} 失效。",
        "pair.welcome": "欢迎！现在你可以跟我说话了。/help 查看我能做什么。",
        "pair.wrong": "这个配对码不对，或已失效。请再要一个新的。",
        "pair.locked": "错误的配对码太多了。请一小时后再试，或请管理员用你的编号让你加入：{id}",
        "error.fetch": "我没能及时取到你随消息发来的内容。请再发一次。",
        "not_here": "我在这里不接受命令，或不接受你的命令。",
        "stranger": "我是私人机器人，还不认识你。如果我的主人给了你配对码，请发给我。你的编号（给主人用）：{id}",
        "bad.rate": "你发得太快了，我听不过来：在你慢下来之前，我会略过你发的内容。",
        "again.ask": "我对这条消息的回答可能没有显示出来。要再显示一次吗？",
        "again.button": "再显示一次",
        "again.gone": "那条回答已经显示过，或已经不在了。",
        "late.ask": "你在我离线时写了消息。要我现在回答吗？",
        "late.button": "现在回答",
        "answer.over": "那个问题已经结束，或不是问你的。",
        "dead.private": "这会显示其他人的聊天：请在私聊中问我。",
        "dead.told": "我对此有回答，但无法在这里显示。请再问一次。",
        "late.gone": "没有需要回答的了。",
        "dead.none": "所有消息都已送达。",
        "dead.head": "未能送达（新的在前）：",
        "dead.line": "{id}  {key}  {date}  {why}",
        "dead.hint": "/dead purge 全部清除。",
        "dead.purged": "已清除：{count}。",
        "help.new": "重新开始；我记得的不会丢",
        "help.status": "我的状态：模型、记忆、待办",
        "help.memory": "我记得你的哪些事：list、search、show、history",
        "help.remember": "记住一件事",
        "help.correct": "更正一件事；旧的内容连同日期保留",
        "help.forget": "移除一条记忆",
        "help.why": "上一条回复用到了哪些记忆，出自哪里",
        "option.memory.action": "做什么；不填则列出",
        "option.memory.rest": "要搜索的词、记忆的编号，或列表的页码",
        "option.remember.text": "要记住的内容",
        "option.correct.id": "哪一条记忆",
        "option.correct.value": "应该是什么；不填则编辑现在的内容",
        "option.forget.id": "哪一条记忆",
        "option.allow.who": "用户的数字编号，或 here 表示本群；不填则列出",
        "option.block.who": "用户的数字编号，或 here 表示本群；不填则列出",
        "option.dead.action": "purge 全部清除",
        "form.remember.title": "记住",
        "form.remember.label": "要我记住什么？",
        "form.correct.title": "更正 {id}",
        "form.correct.label": "应该是什么",
        "help.head": "直接跟我聊天就好，我会记住你说的关于自己的事。命令：",
        "command.unknown": "没有 /{name} 这个命令。{hint}输入 /help 查看全部。",
        "command.hint": "你是想用 /{name} 吗？",
        "command.usage": "用法：{usage}",
        "new.done": "重新开始：之前说过的话我不再看，但我记得的事还在。",
        "status.agent": "助手：{agent} · 模型：{model}",
        "status.offline": "离线（没有语言模型）",
        "status.session": "会话：{key}",
        "status.memory": "记忆：此处关于你的当前记忆 {live} 条，共 {total} 条",
        "status.memory_off": "记忆：此助手已关闭",
        "status.window": "对话：{messages} 条消息，约 {tokens}/{limit} 个 token",
        "status.learning": "学习：{unread} 条未读，{waiting} 项等待，{parked} 项搁置，{budget} 项等待明天的额度；上次：{last}",
        "status.words_only": "搜索：按词语",
        "status.no_embedder": "搜索：按词语（没有加载向量模型）",
        "status.embedding": "搜索：按词语和含义（{model}），已处理 {done}/{total} 条文本",
        "status.never": "从未",
        "status.mail": "信箱：{inbound} 条待回答，{outbound} 条待显示",
        "status.usage": "24 小时内 token：输入 {tokens_in}，输出 {tokens_out}",
        "status.store": "存储：{path} · {sqlite}",
        "memory.none": "我在这里还没有记住关于你的任何事。",
        "memory.head": "我记得的（{shown}/{total}）：",
        "memory.more": "更多：/memory list {page}",
        "memory.profile": "概括：{profile}",
        "memory.line": "{id}  {said}（{date}说的）",
        "memory.old_line": "{id}  {said}（{date}说的，到{until}为止）",
        "memory.not_found": "我记得的事里没有与“{query}”相符的。",
        "memory.found": "找到：",
        "memory.more_found": "还有更多；说得更具体些就能看到。",
        "memory.unknown_id": "这里没有编号为 {id} 的记忆。/memory list 可查看编号。",
        "memory.show": "{id}：{said}\n{kind}，{category} · {key} = {value}\n{date}说的，{origin}{times}{state}",
        "memory.origin.extracted": "从聊天中记下",
        "memory.origin.told": "应你的要求记下",
        "memory.origin.admin": "由管理员记下",
        "memory.origin.imported": "导入",
        "memory.origin.derived": "由其他记忆归纳",
        "memory.times": "；又说过 {count} 次",
        "memory.state.replaced": "；自{until}起不再成立",
        "memory.state.archived": "；已搁置",
        "memory.source": "出自你{date}的消息：“{text}”",
        "memory.source_erased": "出自{date}的一条消息，原话已清除",
        "memory.flags": "看起来像指令（{flags}）；只当作普通文字。",
        "memory.not_yours": "{id} 只能由说的人或它所关于的人更改。",
        "memory.derived": "{id} 是 {ids} 的概括。请更正或忘掉那几条，它会随之改变。",
        "memory.history": "各个版本，从旧到新：",
        "memory.version": "{id}  {said}（{since}至{until}）",
        "memory.version_now": "{id}  {said}（{since}起）",
        "memory.off": "此助手不保存记忆，这里不会学到任何内容。",
        "remember.done": "已保存：{list}",
        "remember.nothing": "这里面没有我能记住的内容。",
        "correct.done": "已更正：{new}（{new_id}）。之前：{old}（{old_id}），连同日期保留。",
        "correct.same": "{id} 本来就是这样。",
        "correct.replaced": "{id} 是旧版本。请更正现在成立的那条：/memory history {id}",
        "forget.ask": "要从记忆中移除 {id}“{said}”吗？你说过的原话仍留在历史中，但我不再从中学习或想起它。请回答“是”或“否”。",
        "forget.done": "已从记忆中移除 {id}：我不再知道、想起它，也不再从那条消息学到它。你说过的原话仍留在历史中。",
        "forget.gone": "那条记忆已经不在了。",
        "forget.kept": "保留。",
        "why.none": "我在这里还没有回复过。",
        "why.nothing": "上一条回复没有用到记忆。",
        "why.head": "上一条回复中：",
        "why.known": "一直知道的：",
        "why.found": "为你的消息找到的：",
        "why.unused": "找到但没有用上的：",
        "why.line": "{id}  {said}（{date}说的）{score}{source}",
        "why.quote": "{said}（{date}）{score}",
        "why.score": " · 得分 {score}（{parts}）",
        "why.source": " · 出自“{text}”",
        "why.forgotten": "一条此后被忘掉的记忆",
        "why.cost": "模型：{model}，输入 {tokens_in}，输出 {tokens_out} 个 token",
        "yes": "是",
        "no": "否",
        "bad.unreadable": "那条消息里没有可读的内容，所以我没有处理它。",
        "attach.image": "图片",
        "attach.audio": "录音",
        "attach.video": "视频",
        "attach.file": "文件",
        "attach.other": "附件",
        "attach.too_large": "（{name}：对我来说太大了。）",
        "attach.no_reader": "（{name}：我读不了这种文件。）",
        "attach.unreadable": "（{name}：已损坏，或内容与名称不符。）",
        "attach.unreachable": "（{name}：没能取到，请再发一次。）",
        "attach.no_transcriber": "（{name}：我听不了录音。）",
        "attach.not_transcribed": "（{name}：没能听清说了什么。）",
        "attach.empty": "（{name}：里面没有文字。）",
        "attach.off": "（{name}：我不读附件。）",
        "attach.locked": "（{name}：需要密码才能打开。）",
        "attach.no_sight": "（{name}：我的模型看不了图片。）",
        "bad.queue": "你比我快：这里已有 {count} 条消息在等。这一条没有收下，请稍后再说一次。",
        "note.long": "这条消息有 {length} 个字符；你看到的是开头和结尾各 {shown} 个。",
        "long.told": "（你的消息有 {length} 个字符，已全部保存，但模型只看到了开头和结尾。）",
        "error.model_auth": "我连不上语言模型：密钥缺失或被拒绝。你的消息已保存。运维者可在日志中查看详情。",
        "error.model_unavailable": "现在连不上语言模型。你的消息已保存，请稍后再试。",
        "error.model_rate_limited": "语言模型正忙或额度已用完。你的消息已保存，请稍后再试。",
        "error.context_overflow": "这段对话对语言模型来说太长了。你的消息已保存；/new 可重新开始。",
        "error.model_refused": "语言模型拒绝了请求。你的消息已保存。运维者可在日志中查看详情。",
        "error.bad_completion": "语言模型没有给出可用的回答。你的消息已保存，请再试一次。",
        "error.model": "语言模型出错。你的消息已保存，请再试一次。",
        "error.deadline": "超过了 {seconds} 秒，我停下了。你的消息已保存，请再试一次。",
        "error.storage": "没能保存：{reason}",
        "error.internal": "我这边出了问题。你的消息已保存。运维者可在日志中查看详情。",
    },
}


def spoken(own: str | None, default: Language) -> Language:
    """The person's own language where the catalogue has it, else `default`."""
    return "en" if own == "en" else "zh" if own == "zh" else default


def written_in(text: str, default: Language) -> Language:
    """The language to answer `text` in, as far as its script tells; Japanese and the rest get `default`."""
    if _KANA.search(text):
        return default
    return "zh" if _HAN.search(text) else default


@dataclass(frozen=True, slots=True)
class Texts:
    """The catalogue in one person's language and timezone: `texts("new.done")`."""

    language: Language
    timezone: str = "UTC"

    def __call__(self, key: str, /, **fields: Any) -> str:
        return CATALOGUE[self.language][key].format(**fields)

    def refusal(self, short_id: str, error: MemoryFault) -> str:
        """Why nothing was done to the memory called `short_id`."""
        match error:
            case NotYours():
                return self("memory.not_yours", id=short_id)
            case NotCurrent():
                return self("correct.replaced", id=short_id)
            case Derived():
                return self("memory.derived", id=short_id, ids=", ".join(error.short_ids))
            case _:
                return self("memory.unknown_id", id=short_id)

    def attachment(self, kind: str, name: str) -> str:
        """What to call something that came with a message: by its name, where it has one, which is never Markdown."""
        return _UNDERSCORE.sub("＿", plain_name(name).translate(_MARKS)) or self(f"attach.{kind}")

    def date(self, moment: int) -> str:
        """A moment (milliseconds UTC) as a date where the person lives."""
        day = datetime.fromtimestamp(moment / 1000, UTC).astimezone(ZoneInfo(self.timezone))
        if self.language == "zh":
            return f"{day.year}年{day.month}月{day.day}日"
        return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"

    def moment(self, moment: int) -> str:
        """A moment as date and time where the person lives."""
        day = datetime.fromtimestamp(moment / 1000, UTC).astimezone(ZoneInfo(self.timezone))
        return f"{self.date(moment)} {day:%H:%M}"

    def span(self, start: int, end: int) -> tuple[str, str]:
        """Two moments as dates, or with the time where both fall on one day."""
        if self.date(start) != self.date(end):
            return self.date(start), self.date(end)
        return self.moment(start), self.moment(end)
