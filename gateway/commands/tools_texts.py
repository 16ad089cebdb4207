"""Texts about an agent's tools, and the question whether one may be used."""

from __future__ import annotations

from typing import Final

EN: Final[dict[str, str]] = {
    "help.tools": "list my tools: where each is from, and whether it asks you first",
    "option.tools.action": "accept, for admins: take changed tools as they are now",
    "option.tools.name": "the name of the tools' server",
    "example.tools": "/tools\n/tools accept files",
    "do": "Do it",
    "call.type": "Type “{do}” or “{no}”.",
    "call.ask": "May I use {tool} ({origin}) with exactly this?\n{arguments}\nIf you don't answer within 10 minutes, I won't.",
    "call.kept": "All right, I won't.",
    "tools.own": "My own tools: {names}",
    "tools.skills": "Skills, which I read up when they fit: {names}",
    "tools.from": "From {origin} (words go to {where}):",
    "tools.here": "From {origin} (on this machine):",
    "tools.reads": "  {name}: only reads, so it doesn't ask",
    "tools.asks": "  {name}: asks you first",
    "tools.off": "  {name}: switched off{why}",
    "tools.off.why": ": {why}",
    "tools.accept": "An admin can take the tools as they are now: /tools accept {origin}",
    "tools.model": "Without a language model I use no tools.",
    "tools.admins": "Only admins can do that.",
    "tools.unknown": "I have no tools from {name}.",
    "tools.accepted": "The tools from {origin} are taken as they are now.",
    "tools.failed": "That didn't work: {why}",
    "privacy.tools": "When I use a tool, words from the conversation may also go to: {places}. /tools lists the tools.",
}

ZH: Final[dict[str, str]] = {
    "help.tools": "列出我的工具：来自哪里，使用前是否先问你",
    "option.tools.action": "accept（仅管理员）：按现在的样子接受变更的工具",
    "option.tools.name": "工具所在服务器的名称",
    "example.tools": "/tools\n/tools accept files",
    "do": "执行",
    "call.type": "请输入“{do}”或“{no}”。",
    "call.ask": "我可以用 {tool}（{origin}）执行以下内容吗？\n{arguments}\n10 分钟内没有回答，我就不执行。",
    "call.kept": "好的，我不执行。",
    "tools.own": "我自己的工具：{names}",
    "tools.skills": "技能，合适时我会读：{names}",
    "tools.from": "来自 {origin}（内容会发送到 {where}）：",
    "tools.here": "来自 {origin}（在本机上）：",
    "tools.reads": "  {name}：只读取，不会先问",
    "tools.asks": "  {name}：会先问你",
    "tools.off": "  {name}：已关闭{why}",
    "tools.off.why": "：{why}",
    "tools.accept": "管理员可以按现在的样子接受这些工具：/tools accept {origin}",
    "tools.model": "没有语言模型时我不使用工具。",
    "tools.admins": "只有管理员可以这样做。",
    "tools.unknown": "我没有来自 {name} 的工具。",
    "tools.accepted": "已按现在的样子接受来自 {origin} 的工具。",
    "tools.failed": "没有成功：{why}",
    "privacy.tools": "我使用工具时，对话中的内容还可能发给：{places}。/tools 列出这些工具。",
}
